"""Follow the gradient of a class score back through the layers, by hooks that can clamp it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from hookviz.explaining.scores.scoring import class_scores
from hookviz.hooking.device import device_and_dtype
from hookviz.hooking.forward_pass import backward_pass, differentiable
from hookviz.hooking.gradients import Gradient, on_gradients
from hookviz.lessons.layers import PLACES, layer_of
from hookviz.lessons.part import LessonScene
from hookviz.types import LayerInfo

IMAGE = ""
"""Stands for the image among the layers: the last place that the gradient comes to."""


@dataclass(frozen=True, eq=False, slots=True)
class Passed:
    """Gradient at one place on its way back.

    Attributes:
        layer: at whose output; `IMAGE` for the image.
        values: ∂score/∂output as the hook passed it on, float32 ``(C, H, W)``.
        came: the largest number that came to the hook, signs aside.
    """

    layer: str
    values: NDArray[np.float32] = field(repr=False)
    came: float

    @property
    def norm(self) -> float:
        """The length of what was passed on."""
        return float(np.linalg.norm(self.values.astype(np.float64)))

    @property
    def longest(self) -> int:
        """The channel with the longest gradient."""
        sizes = np.square(self.values.astype(np.float64)).sum((1, 2))
        return int(np.nan_to_num(sizes).argmax())


def layers_on_the_way(scene: LessonScene) -> list[LayerInfo]:
    """Return a few conv layers with maps, from the first to the last, each once."""
    layers = (layer_of(scene, place) for place in PLACES if place != "second")
    return list({layer.name: layer for layer in layers}.values())


def way_back(scene: LessonScene, target: int, at: str = "", limit: float = 0.0) -> list[Passed]:
    """Return the gradient of a class's score at each of these layers, the last one first.

    The image comes last of all.

    Args:
        scene: whose model and image.
        target: the class.
        at: the layer whose hook clamps what comes, for all before it; "" clamps nowhere.
        limit: no number that it passes on is larger, signs aside.

    Raises:
        HookVizError: the network has no conv layer or no class scores, or can't be differentiated.
    """
    layers = layers_on_the_way(scene)
    cells = sum(int(np.prod(layer.output_shape)) for layer in layers)
    nbytes = 4 * (cells + scene.model_input.tensor.numel())
    key = ("way back", target, at, limit)
    return scene.cached(key, lambda: _way_back(scene, target, layers, (at, limit)), nbytes)


def _way_back(
    scene: LessonScene, target: int, layers: Sequence[LayerInfo], clamp: tuple[str, float]
) -> list[Passed]:
    passed: dict[str, Passed] = {}
    at, limit = clamp

    def hook(gradient: Gradient) -> Tensor | None:
        if gradient.side != "output" or gradient.index or gradient.place:
            return None
        value = gradient.value
        on = value.clamp(-limit, limit) if gradient.layer == at else value
        passed[gradient.layer] = _passed(gradient.layer, value, on)
        return on if gradient.layer == at else None

    model = scene.model
    with differentiable(model) as network:
        images = scene.model_input.tensor.to(*device_and_dtype(network), copy=True)
        images.requires_grad_()
        with on_gradients(network, [layer.name for layer in layers], hook):
            score = class_scores(model, network, images).values[0, target]
            (of_image,) = backward_pass(model, score, [images])
    if of_image is not None:
        passed[IMAGE] = _passed(IMAGE, of_image, of_image)
    names = [*(layer.name for layer in reversed(layers)), IMAGE]
    return [passed[name] for name in names if name in passed]


def _passed(layer: str, came: Tensor, on: Tensor) -> Passed:
    values = on.detach()[0].cpu().float().numpy().copy()
    return Passed(layer, values, float(came.detach().abs().max()))
