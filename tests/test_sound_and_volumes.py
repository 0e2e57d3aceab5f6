"""Lenses over sound, volumes and clips against plain autograd, or a refusal in words."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import hookviz
from tests.kinds_of_networks import KINDS, NOT_IMAGES
from tests.networks import plain_network

EACH = pytest.mark.parametrize("kind", NOT_IMAGES)
LAST = {"sound": "3", "spectrogram": "second", "volume": "3", "frames": "second"}


def by_autograd(model: hookviz.Model, image: Tensor, layer: str, target: int) -> tuple[Any, Any]:
    """A layer's output and the class score's gradient at it, ``(C, *cells)``."""
    network, seen = plain_network(model), []
    hook = network.get_submodule(layer).register_forward_hook(
        lambda _module, _given, output: seen.append(output)
    )
    scores = network(image.clone().requires_grad_())
    hook.remove()
    (gradient,) = torch.autograd.grad(scores[0, target], seen[0])
    return by_channel(seen[0]), by_channel(gradient)


def by_channel(maps: Tensor) -> Any:
    """Of one input, ``(C, *cells)``: of frames that are a batch, these are the depth."""
    return (maps[0] if len(maps) == 1 else maps.transpose(0, 1)).detach().numpy()


def summed(weights: Any, values: Any) -> Any:
    return (weights.reshape(len(weights), *[1] * (values.ndim - 1)) * values).sum(0)


@EACH
def test_class_activation_maps_equal_plain_autograd(kind: str) -> None:
    model, image = KINDS[kind].made(kind)
    values, gradient = by_autograd(model, image, LAST[kind], 1)
    cells = tuple(range(1, values.ndim))
    expected = {
        "Grad-CAM": summed(gradient.mean(cells), values),
        "LayerCAM": (np.maximum(gradient, 0) * values).sum(0),
    }
    for method, signed in expected.items():
        chosen: dict[str, Any] = {"method": method, "layer": LAST[kind], "target": 1}
        found = hookviz.run_lens("grad-cam", model, image, **chosen)
        np.testing.assert_allclose(found.values["signed"], signed, atol=1e-6)
        np.testing.assert_allclose(found.values["map"], np.maximum(signed, 0), atol=1e-6)
    found = hookviz.run_lens("gradients", model, image, layer=LAST[kind], target=1)
    np.testing.assert_allclose(found.values["gradient"], gradient, atol=1e-6)
    for method in ("Grad-CAM", "Grad-CAM++", "LayerCAM", "Eigen-CAM"):
        found = hookviz.run_lens("grad-cam", model, image, method=method)
        assert found.values["map"].size > 1
        assert found.chosen["layer"] in LAST[kind]


@EACH
def test_attributions_equal_plain_autograd_and_add_up(kind: str) -> None:
    model, image = KINDS[kind].made(kind)
    given = image.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(plain_network(model)(given)[0, 1], given)
    for method, expected in (("gradient", gradient), ("input × gradient", gradient * image)):
        found = hookviz.run_lens("saliency", model, image, method=method, target=1)
        np.testing.assert_allclose(found.values["attribution"], expected[0], atol=1e-6)
        assert found.values["map"].shape == image.shape[2:]
    network = plain_network(model)
    found = hookviz.run_lens("integrated-gradients", model, image, target=1)
    difference = float(network(image)[0, 1] - network(torch.zeros_like(image))[0, 1])
    assert found.values["attribution"].shape == image.shape[1:]
    assert found.values["attribution"].sum() == pytest.approx(difference, rel=0.05, abs=1e-3)


@EACH
def test_layers_are_listed_with_the_shapes_that_captures_have(kind: str) -> None:
    model, image = KINDS[kind].made(kind)
    for which in ("all", "maps"):
        layers = hookviz.list_layers(model, kind=which, input_shape=image.shape[1:])
        cap = hookviz.capture(model, image, [layer.name for layer in layers])
        for layer in layers:
            assert tuple(cap[layer.name].values.shape) == layer.output_shape


def test_every_frame_of_a_batch_counts_as_work() -> None:
    model, image = KINDS["frames"].made("frames")
    layer = hookviz.list_layers(model, input_shape=image.shape[1:])[0]
    assert layer.multiply_adds == 4 * (3 * 4 * 9 + 4) * 16 * 16
