"""Show the kernels of the first conv layer as they began, random, and as training left them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hookviz.errors import ModelError
from hookviz.explaining.layers.conv_kernels import Kernels, conv_kernels
from hookviz.language.saying import mark
from hookviz.lessons.layers import layer_of
from hookviz.lessons.part import Fact, LessonScene, Options, Part
from hookviz.models.derived_models import untrained
from hookviz.types import LayerInfo, Pixels

_MOST = 64  # kernels that are shown
_COLOURS = 3


@dataclass(frozen=True, eq=False, slots=True)
class FirstKernels:
    """Kernels of one layer before and after training, ``(kernels, 3, rows, columns)`` each.

    Attributes:
        layer: it.
        inputs: of each kernel; of other than three the first is shown, in grey.
        before: with random weights; None where the model's own are random or can't be drawn anew.
        after: with the model's own.
    """

    layer: LayerInfo
    inputs: int
    before: Kernels | None = field(repr=False)
    after: Kernels = field(repr=False)


def first_kernels(scene: LessonScene) -> FirstKernels:
    """Return the kernels of the model's first conv layer, random and its own."""
    layer = layer_of(scene, "first")
    after = conv_kernels(scene.model, layer)
    try:
        before = _as_colours(conv_kernels(untrained(scene.model), layer))
    except ModelError:
        before = None
    return FirstKernels(layer, after.shape[1], before, _as_colours(after))


def _as_colours(kernels: Kernels) -> Kernels:
    """Return the kernels that are shown, with three inputs: their own, or thrice the first."""
    shown = kernels[:_MOST]
    return shown if shown.shape[1] == _COLOURS else shown[:, :1].repeat(_COLOURS, 1)


def in_colour(kernels: Kernels) -> Pixels:
    """Return kernels as pictures, uint8 ``(kernels, rows, columns, 3)``.

    Grey is 0, and the largest weight of a kernel, signs aside, is at one end of a colour.
    """
    sizes = np.abs(kernels).max((1, 2, 3), keepdims=True)
    shares = kernels / np.where(sizes > 0, sizes, 1)
    pixels: Pixels = np.rint(127.5 + 127.5 * shares).astype(np.uint8).transpose(0, 2, 3, 1)
    return pixels


def _facts(scene: LessonScene, _options: Options) -> Mapping[str, Fact]:
    layer = layer_of(scene, "first")
    kernels = conv_kernels(scene.model, layer)
    parameters = sum(each.numel() for each in scene.model.network.parameters())
    return {
        "layer": layer.name,
        "count": len(kernels),
        "numbers": int(np.prod(kernels.shape[1:])),
        "all": parameters,
    }


PART = Part(
    name="first-kernels",
    sentence=mark(
        "The kernels of the first conv layer in colour: as they began, random, and as training "
        "left them."
    ),
    facts=_facts,
)
