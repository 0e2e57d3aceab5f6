from functools import cache

import pytest
import torch
from torch import Tensor, nn

import hookviz
from tests.networks import seeded
from tests.pictures import picture


def test_a_tensor_and_an_input_are_used_as_they_are(tiny: hookviz.Model, noise: Tensor) -> None:
    made = hookviz.prepare(tiny, noise)
    assert torch.equal(made.tensor, noise)
    assert hookviz.prepare(tiny, made) is made
    for given in (noise, made):
        with pytest.raises(hookviz.ImageError, match=r"size=32 is for images.*Leave it out"):
            hookviz.prepare(tiny, given, size=32)


def test_an_image_takes_the_size_that_is_asked_for(tiny: hookviz.Model) -> None:
    assert hookviz.prepare(tiny, picture(), size=20).tensor.shape == (1, 3, 20, 20)


@cache
def random_model(name: str) -> hookviz.Model:
    """One for all sizes: VGG's 133 million weights take seconds to draw."""
    return hookviz.load_model(name, "random")


@pytest.mark.parametrize("size", [1, 2, 7, 31])
@pytest.mark.parametrize("name", ["shapesnet", "squeezenet", "resnet18"])
def test_the_network_decides_how_small_an_input_it_takes(name: str, size: int) -> None:
    model = random_model(name)
    given = hookviz.prepare(model, picture(), size=size)
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


def test_the_whole_image_is_as_small_as_it_is_asked_for() -> None:
    model = hookviz.load_model("shapesnet", "random")
    shape = hookviz.prepare(model, picture(3, 40, 20), size=2, whole=True).tensor.shape
    assert shape in {(1, 3, 4, 2), (1, 3, 2, 4)}


def test_sound_is_told_by_its_model() -> None:
    sound = hookviz.wrap(seeded(lambda: nn.Sequential(nn.Conv1d(1, 4, 9))))
    assert hookviz.prepare(sound, torch.zeros(1, 80)).tensor.shape == (1, 1, 80)
    with pytest.raises(hookviz.ImageError, match=r"float tensor of \(C, L\)"):
        hookviz.prepare(sound, torch.zeros(1, 3, 8, 8))
