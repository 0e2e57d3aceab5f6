"""Activation patching and attribution patching, held against plain hooks and captum."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torchvision.models.resnet import BasicBlock, ResNet

import hookviz
from hookviz.errors import ModelError, SettingError, UnknownLayerError
from hookviz.explaining.patching import part_patching
from hookviz.explaining.patching.patch import Patching, PatchRow
from tests.networks import Tiny, as_model, as_shared, hook_count, random_input, seeded
from tests.small_transformers import torchvision_swin, torchvision_vit

SIDE = 32
TARGET = 2


def plain_outputs(network: nn.Module, layer: str, image: Tensor) -> tuple[list[Tensor], Tensor]:
    """What a layer puts out in each of its calls, and the target, with a graph."""
    outputs: list[Tensor] = []

    def keep(_module: nn.Module, _args: Any, output: Tensor) -> Tensor:
        outputs.append(output)
        return output.clone()  # an in-place layer behind it writes into the copy

    handle = network.get_submodule(layer).register_forward_hook(keep)
    score = network(image)[0, TARGET]
    handle.remove()
    return outputs, score


def by_hand(
    network: nn.Module, layer: str, images: tuple[Tensor, Tensor], masks: list[Any]
) -> tuple[list[float], list[float]]:
    """The share of each part, and its estimate by the gradient, by plain hooks and autograd.

    A mask is an index into what the layer puts out, (N, C, H, W) or (N, T, C).
    """
    clean, high = plain_outputs(network, layer, images[0])
    corrupted, low = plain_outputs(network, layer, images[1])
    gradients = torch.autograd.grad(low, corrupted)
    high, low = high.detach(), low.detach()
    clean, corrupted = ([each.detach() for each in outputs] for outputs in (clean, corrupted))
    shares, direct = [], []
    for mask in masks:
        calls = iter(clean)

        def patch(
            _module: nn.Module, _args: Any, output: Tensor, calls: Any = calls, mask: Any = mask
        ) -> Tensor:
            output = output.clone()
            output[mask] = next(calls)[mask]
            return output

        handle = network.get_submodule(layer).register_forward_hook(patch)
        with torch.no_grad():
            patched = network(images[1])[0, TARGET]
        handle.remove()
        shares.append(float((patched - low) / (high - low)))
        effects = [
            (gradient * (one - other))[mask].sum()
            for gradient, one, other in zip(gradients, clean, corrupted, strict=True)
        ]
        direct.append(float(sum(effects) / (high - low)))
    return shares, direct


NETWORKS: dict[str, tuple[Callable[[], nn.Module], str, str]] = {
    "conv": (Tiny, "conv1", "relu"),
    "resnet": (lambda: ResNet(BasicBlock, [1, 1, 1, 1]), "layer2.0.conv1", "layer3"),
    "vit": (
        torchvision_vit,
        "encoder.layers.encoder_layer_0.mlp.0",
        "encoder.layers.encoder_layer_0",
    ),
    "swin": (torchvision_swin, "features.2", "features.1.1.norm1"),
}


def parts_of(output: Tensor, by: str, *, last: bool, prefix: int) -> list[Any]:
    """Indices of a layer's parts into what it puts out."""
    if by == "channel":
        axis = output.ndim - 1 if last else 1
        every = (slice(None),) * axis
        return [(*every, channel) for channel in range(output.shape[axis])]
    if output.ndim == 3:  # tokens, the first ones of which stand for no cell
        return [(slice(None), token) for token in range(prefix, output.shape[1])]
    rows, columns = (output.shape[1], output.shape[2]) if last else output.shape[2:]
    places = np.ndindex(rows, columns)
    return [(slice(None), *at) if last else (slice(None), slice(None), *at) for at in places]


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("by", ["layer", "channel", "cell"])
def test_it_is_what_plain_hooks_compute(name: str, by: str) -> None:
    build, layer, block = NETWORKS[name]
    network = seeded(build).eval().double()
    side = 8 if name == "conv" else SIDE
    images = random_input(0, side).double(), random_input(1, side).double()
    layers = [layer, block] if by == "layer" else [layer]
    found = hookviz.patch(
        as_model(network), images[0][0], images[1][0], layers, target=TARGET, by=by
    )
    assert hook_count(network) == 0
    for each in layers:
        output = plain_outputs(network, each, images[0])[0][0]
        masks = (
            [...] if by == "layer" else parts_of(output, by, last=name in {"vit", "swin"}, prefix=1)
        )
        some = slice(None, None, 1 + len(masks) // 8)  # from the first to the last
        shares, direct = by_hand(network, each, images, masks[some])
        assert found.shares[each].size == len(masks)
        np.testing.assert_allclose(found.shares[each].flatten()[some], shares, atol=1e-6)
        np.testing.assert_allclose(found.direct[each].flatten()[some], direct, atol=1e-6)
        assert np.abs(shares).max() > 1e-4
    scores = [network(image)[0, TARGET].item() for image in images]
    assert (found.clean, found.corrupted) == pytest.approx(scores)


def test_a_network_of_the_catalog_is_patched_by_the_clean_images_class() -> None:
    network = seeded(Tiny)
    model = as_shared(network)
    clean, corrupted = random_input(0)[0], random_input(1)[0]
    told: list[float] = []
    found = hookviz.patch(model, clean, corrupted, progress=told.append)
    best = int(network(clean[None])[0].argmax())
    same = hookviz.patch(model, clean, corrupted, target=lambda out: out[0, best])
    assert list(found.shares) == ["conv1", "conv2"]
    assert found.shares["conv1"] == pytest.approx(1)  # all that comes later depends on it alone
    assert same.shares["conv2"] == pytest.approx(found.shares["conv2"])
    assert told == sorted(told)
    assert told[-1] == 1


def test_several_tensors_are_patched_by_the_first_without_an_estimate() -> None:
    network = seeded(torchvision_vit).eval()
    layer = "encoder.layers.encoder_layer_1.self_attention"
    found = hookviz.patch(
        as_model(network), random_input(0, SIDE)[0], random_input(1, SIDE)[0], layer
    )
    assert np.isfinite(found.shares[layer])
    assert np.isnan(found.direct[layer])
    assert found.note.startswith(f"There is no estimate at {layer}")


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"corrupted": random_input(0)[0]}, SettingError, "for both images in Tiny"),
        ({"corrupted": random_input(1, 20)[0]}, SettingError, "3×16×16 and the corrupted one 3×20"),
        ({"by": "neuron"}, SettingError, "no by called 'neuron'"),
        ({"target": 5}, SettingError, "target=5 is not a class of Tiny: 0 to 4"),
        ({"layers": "conv3"}, UnknownLayerError, "conv3"),
        ({"layers": "relu", "by": "channel"}, ModelError, "runs 2 times in a pass.*by='layer'"),
        ({"layers": "head", "by": "cell"}, ModelError, "'head' of Tiny puts out no maps"),
    ],
)
def test_what_can_not_be_patched_is_refused(
    options: dict[str, Any], kind: type[Exception], words: str
) -> None:
    given = {"clean": random_input(0)[0], "corrupted": random_input(1)[0]} | options
    with pytest.raises(kind, match=words):
        hookviz.patch(as_model(seeded(Tiny)), **given)


def test_what_would_take_hours_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_patching, "MAX_WORK", 1e4)
    with pytest.raises(ModelError, match="10 parts of Tiny one by one"):
        hookviz.patch(as_model(seeded(Tiny)), random_input(0)[0], random_input(1)[0], by="channel")


def patching_of(**shares: object) -> Patching:
    arrays = {name: np.asarray(values, np.float64) for name, values in shares.items()}
    return Patching("Tiny", "the score of star", "cell", 2.0, 1.0, arrays, arrays)


def test_the_table_has_a_row_for_each_part() -> None:
    found = patching_of(conv1=[[0.1, 0.4]], head=0.3)
    assert found.table() == (
        PatchRow("conv1", (0, 0), 0.1, 0.1),
        PatchRow("conv1", (0, 1), 0.4, 0.4),
        PatchRow("head", (), 0.3, 0.3),
    )
    assert [row.share for row in found.table(2)] == [0.4, 0.3]


@pytest.mark.parametrize("shares", [0.5, [0.1, -0.2], [[0.1], [0.4]]])
def test_it_shows_itself(shares: object) -> None:
    found = patching_of(conv1=shares, conv2=shares)
    html = found._repr_html_()
    assert "conv2" in html
    assert "data:image/png" in html
    figure = found.figure()
    assert figure.get_suptitle() == "Tiny: the score of star, from 1.00 to 2.00"
