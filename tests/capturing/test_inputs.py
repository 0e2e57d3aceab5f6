from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.capturing.inputs import own_shape, settle_input
from tests.networks import random_input, seeded
from tests.pictures import picture


def test_a_tensor_and_an_input_are_used_as_they_are(tiny: hookviz.Model, noise: Tensor) -> None:
    made = hookviz.prepare_input(tiny, noise)
    assert torch.equal(made.tensor, noise)
    assert hookviz.prepare_input(tiny, made) is made
    for given in (noise, made):
        with pytest.raises(hookviz.ImageError, match=r"size=32 is for images.*Leave it out"):
            hookviz.prepare_input(tiny, given, size=32)
    assert hookviz.prepare_input(tiny, picture(), size=20).tensor.shape == (1, 3, 20, 20)
    whole = hookviz.prepare_input(tiny, picture(3, 40, 20), size=2, whole=True)
    assert whole.tensor.shape in {(1, 3, 4, 2), (1, 3, 2, 4)}


@cache
def random_model(name: str) -> hookviz.Model:
    """One for all sizes: VGG's 133 million weights take seconds to draw."""
    return hookviz.load_model(name, "random")


@pytest.mark.parametrize("size", [1, 2, 7, 31])
@pytest.mark.parametrize("name", ["shapesnet", "squeezenet", "resnet18"])
def test_the_network_decides_how_small_an_input_it_takes(name: str, size: int) -> None:
    model = random_model(name)
    given = hookviz.prepare_input(model, picture(), size=size)
    for image in (given, torch.rand(1, 3, size, 2 * size + 1)):
        tensor = image if isinstance(image, Tensor) else image.tensor
        try:
            with torch.no_grad():
                expected = model.network(tensor.clone())
        except RuntimeError:
            with pytest.raises(hookviz.ModelError, match=rf"input of 3×{size}×.* fails on 1×"):
                hookviz.capture(model, image)
        else:
            torch.testing.assert_close(hookviz.capture(model, image).logits, expected[0])


def digits() -> nn.Module:
    """It takes 28×28 and nothing else."""
    return nn.Sequential(nn.Conv2d(1, 4, 5), nn.Flatten(), nn.Linear(4 * 24 * 24, 3))


def sizes_of(network: nn.Module) -> list[tuple[int, ...]]:
    """The shapes of what the network is called with from now on."""
    sizes: list[tuple[int, ...]] = []
    network.register_forward_pre_hook(lambda _module, args: sizes.append(tuple(args[0].shape)))
    return sizes


def test_a_size_that_fails_is_corrected_once_for_all_models_of_a_network() -> None:
    network = seeded(digits)
    model = hookviz.wrap(network)
    assert (model.is_guessed, model.preprocess.crop) == (True, 224)  # type: ignore[union-attr]
    assert hookviz.prepare_input(model, picture()).tensor.shape == (1, 1, 28, 28)
    assert (model.is_guessed, model.preprocess.crop) == (False, 28)  # type: ignore[union-attr]
    sizes = sizes_of(network)
    assert own_shape(hookviz.wrap(network)) == (1, 28, 28)
    counts = []
    for threads in (1, 4):  # which search once
        other = seeded(digits)
        tried = sizes_of(other)
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda each: settle_input(hookviz.wrap(each)), [other] * threads))
        counts.append(len(tried))
    assert counts[0] == counts[1]
    given = hookviz.Preprocess(resize=40, crop=40, mean=(0.5,), std=(0.5,))
    assert own_shape(hookviz.wrap(seeded(digits), given)) == (1, 40, 40)  # which is not tried
    assert sizes == []
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    sizes = sizes_of(network)
    hookviz.capture(network, random_input(1))  # a look with a tensor tries no other input
    assert set(sizes) == {(1, 3, 16, 16)}
    with pytest.raises(hookviz.ModelError, match="7"):  # at no size it runs
        hookviz.capture(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Linear(7, 7)), picture())
