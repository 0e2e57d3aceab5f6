"""Show the kernels of the first conv layer as they began, random, and as training left them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hookviz.errors import HookVizError
from hookviz.explaining.conv_kernels import Kernels, conv_kernels
from hookviz.language.saying import mark, say
from hookviz.lessons.layers import layer_of
from hookviz.lessons.part import Fact, LessonScene, Options, Part
from hookviz.models.untrained import untrained
from hookviz.types import LayerInfo, Pixels

_MOST = 64  # kernels that are shown
_COLOURS = 3


@dataclass(frozen=True, eq=False, slots=True)
class FirstKernels:
    """Kernels of one layer before and after training, ``(kernels, 3, rows, columns)`` each.

    Attributes:
        layer: it.
        before, after: with random weights, and with the model's own.
    """

    layer: LayerInfo
    before: Kernels = field(repr=False)
    after: Kernels = field(repr=False)


def first_kernels(scene: LessonScene) -> FirstKernels:
    """Return the kernels of the model's first conv layer, random and its own.

    Raises:
        HookVizError: that layer does not look at red, green and blue.
        ModelError: the weights are random already, or can't be drawn anew.
    """
    layer = layer_of(scene, "first")
    after = conv_kernels(scene.model, layer)
    if after.shape[1] != _COLOURS:
        raise HookVizError(
            say(
                "The kernels of {layer} have {inputs} inputs and not red, green and blue, so they "
                "are no pictures. ShapesNet's are.",
                layer=layer.name,
                inputs=after.shape[1],
            )
        )
    before = conv_kernels(untrained(scene.model), layer)
    return FirstKernels(layer, before[:_MOST], after[:_MOST])


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
