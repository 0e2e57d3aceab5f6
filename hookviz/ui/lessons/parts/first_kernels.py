"""Show the kernels of the first conv layer before training, random, and after it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import streamlit as st

from hookviz.drawing.pictures import encode_png
from hookviz.errors import ModelError
from hookviz.explaining.layers.conv_kernels import Kernels, conv_kernels
from hookviz.language.saying import mark, say
from hookviz.lessons.layers import layer_of
from hookviz.lessons.part import Fact, LessonScene, Options, Part
from hookviz.models.derived_models import untrained
from hookviz.types import LayerInfo, Pixels
from hookviz.ui.state import plain

_MOST = 64  # kernels
_COLOURS = 3


@dataclass(frozen=True, eq=False, slots=True)
class FirstKernels:
    """Kernels of one layer before and after training, ``(kernels, 3, rows, columns)`` each.

    Attributes:
        layer: the layer.
        inputs: of each kernel; unless three, the first is shown in grey.
        before: random; None if the model's own are random or can't be drawn again.
        after: the model's own.
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
    """Return the first kernels with three inputs: their own, or the first one three times."""
    first = kernels[:_MOST]
    return first if first.shape[1] == _COLOURS else first[:, :1].repeat(_COLOURS, 1)


def in_colour(kernels: Kernels) -> Pixels:
    """Return kernels as pictures, uint8 ``(kernels, rows, columns, 3)``.

    Grey is 0, as numbers that are not finite, and the largest magnitude of a kernel is at one end
    of a colour.
    """
    finite = np.nan_to_num(kernels, posinf=0, neginf=0)
    sizes = np.abs(finite).max((1, 2, 3), keepdims=True)
    shares = finite / np.where(sizes > 0, sizes, 1)
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


_KERNEL_PX = 80
_GAP = 0.12  # of a kernel's side


def kernel_sheet(kernels: Pixels, across: int, *, magnify: int = 0, gap: int = 0) -> Pixels:
    """Arrange kernels ``(N, rows, columns, 3)`` in rows on a transparent sheet, RGBA.

    Args:
        kernels: as by `in_colour`.
        across: kernels in a row.
        magnify: pixels of a weight; 0 for kernels of about `_KERNEL_PX`.
        gap: pixels between kernels; 0 for `_GAP` of a kernel.
    """
    count, rows, columns, _ = kernels.shape
    times = magnify or max(1, _KERNEL_PX // max(rows, columns))
    gap = gap or max(1, round(_GAP * times * max(rows, columns)))
    tall, wide = rows * times + gap, columns * times + gap
    lines = -(-count // across)
    page = np.zeros((lines * tall - gap, min(count, across) * wide - gap, 4), np.uint8)
    for number, kernel in enumerate(kernels):
        top, left = number // across * tall, number % across * wide
        large = kernel.repeat(times, 0).repeat(times, 1)
        page[top : top + rows * times, left : left + columns * times, :3] = large
        page[top : top + rows * times, left : left + columns * times, 3] = 255
    return page


def show(scene: LessonScene, _options: Options, _key: str) -> None:
    """Draw both sheets, with each kernel at the same position."""
    kernels = first_kernels(scene)
    sheets = [(say("As training left them"), kernels.after)]
    if kernels.before is not None:
        sheets.insert(0, (say("As they began: random"), kernels.before))
    elif scene.model.weights == "random":
        sheets = [(say("Random, as your network's weights are"), kernels.after)]
    across = math.ceil(math.sqrt(len(kernels.after)))
    for column, (title, each) in zip(st.columns(2), sheets, strict=False):
        with column:
            st.markdown(f"**{title}**")
            st.image(encode_png(kernel_sheet(in_colour(each), across)), width="stretch", alt=title)
    text = say(
        "Kernels of {layer}, each by its own largest weight; grey is zero.",
        layer=kernels.layer.name,
    )
    if kernels.inputs != _COLOURS:
        text += " " + say(
            "They have {inputs} inputs, of which you see the first.", inputs=kernels.inputs
        )
    if scene.model.weights == "random":
        text += " " + say("Choose trained weights, and you see what became of them.")
    st.caption(plain(text))
