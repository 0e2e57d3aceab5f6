"""Define kernels made by hand, with their titles, and convolve a grey picture with one.

Here are also the words for what a changed weight of a kernel does to its map.
"""

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from hookviz.explaining.layers.layer_call import LayerCall
from hookviz.language.saying import localised, mark, say
from hookviz.wording import number

Kernel = tuple[tuple[float, ...], ...]
"""Rows of weights, as many as columns."""

_NINTH = 1 / 9

PRESETS: Mapping[str, Kernel] = MappingProxyType(
    {
        "vertical": ((-1.0, 0.0, 1.0), (-2.0, 0.0, 2.0), (-1.0, 0.0, 1.0)),
        "horizontal": ((-1.0, -2.0, -1.0), (0.0, 0.0, 0.0), (1.0, 2.0, 1.0)),
        "diagonal": ((-2.0, -1.0, 0.0), (-1.0, 0.0, 1.0), (0.0, 1.0, 2.0)),
        "outline": ((-1.0, -1.0, -1.0), (-1.0, 8.0, -1.0), (-1.0, -1.0, -1.0)),
        "blur": ((_NINTH,) * 3,) * 3,
        "sharpen": ((0.0, -1.0, 0.0), (-1.0, 5.0, -1.0), (0.0, -1.0, 0.0)),
        "copy": ((0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 0.0)),
    }
)
"""By name; the first two are Sobel's, and the outline is a Laplacian."""

TITLES: Mapping[str, str] = MappingProxyType(
    {
        "vertical": mark("Vertical edges"),
        "horizontal": mark("Horizontal edges"),
        "diagonal": mark("Diagonal edges"),
        "outline": mark("Outline"),
        "blur": mark("Blur"),
        "sharpen": mark("Sharpen"),
        "copy": mark("Copy"),
    }
)
"""What they are called on the page."""


def kernel_call(grey: NDArray[np.float32], kernel: Kernel, stride: int, padding: int) -> LayerCall:
    """Convolve a picture ``(H, W)`` with a kernel; return the map with all that made it.

    As conv layers do it, the kernel is not turned around: mathematics calls it cross-correlation.
    """
    weight = torch.tensor(kernel, dtype=torch.float32)[None, None]
    picture = torch.from_numpy(np.ascontiguousarray(grey))[None]
    padded = F.pad(picture, (padding,) * 4)
    return LayerCall(
        layer="kernel",
        kernel=weight,
        bias=None,
        padded=padded,
        corner=(padding, padding),
        size=(picture.shape[1], picture.shape[2]),
        stride=(stride, stride),
        dilation=(1, 1),
        groups=1,
        output=F.conv2d(padded[None], weight, stride=stride)[0],
        steps=(),
        rounding=1e-5,
    )


def same_size_map(kernel: Kernel, picture: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the map that a small kernel makes of a picture ``(H, W)``, as large as the picture.

    Beyond its edges the picture goes on as it ends there, so that its frame is no edge.
    """
    around = [size // 2 for size in (len(kernel), len(kernel[0]))]
    return (
        kernel_call(np.pad(picture, [(side, side) for side in around], "edge"), kernel, 1, 0)
        .output[0]
        .numpy()
    )


def fraction_text(weight: float) -> str:
    """Return a weight as people write it: ``"−1"``, ``"1/9"``."""
    return str(Fraction(weight).limit_denominator(100)).replace("-", "−")


def output_length(length: int, kernel: int, stride: int, padding: int) -> int:
    """Return how many rows a map has, of a picture of `length` rows; columns likewise."""
    return max(0, length + 2 * padding - kernel) // stride + 1


_PLACES = (
    (mark("at the upper left"), mark("above"), mark("at the upper right")),
    (mark("at the left"), mark("in the middle"), mark("at the right")),
    (mark("at the lower left"), mark("below"), mark("at the lower right")),
)
"""Where each weight of a kernel of 3 × 3 stands, seen from its middle."""


class ChangedWeight(NamedTuple):
    """A weight of a kernel, by its row and column from 0, and what it was before."""

    row: int
    column: int
    before: float


def changed_weight(before: Kernel, after: Kernel) -> ChangedWeight | None:
    """Return the one weight in which two kernels differ; None where it is none, or several."""
    if len(before) != len(after):
        return None
    changed = [
        ChangedWeight(row, column, old)
        for row, (olds, news) in enumerate(zip(before, after, strict=True))
        for column, (old, new) in enumerate(zip(olds, news, strict=True))
        if old != new
    ]
    return changed[0] if len(changed) == 1 else None


def effect_words(
    kernel: Kernel,
    changed: ChangedWeight | None,
    before: NDArray[np.float32],
    after: NDArray[np.float32],
) -> str:
    """Say what became of the map ``(H, W)``: of each cell and of the mean.

    Args:
        kernel: as it is now.
        changed: the weight that was changed last, if it was one.
        before: the map with the weight as it was.
        after: the map now.
    """
    mean = number(float(after.mean()))
    if changed is None:
        return say(
            "The map's mean is {mean}; its values go from {low} to {high}.",
            mean=mean,
            low=number(float(after.min())),
            high=number(float(after.max())),
        )
    now = kernel[changed.row][changed.column]
    words = (
        mark(
            "The weight {place} went from {old} to {new}. Each cell of the map has gained "
            "{change} × the pixel {place}, most where that is bright. Mean of the map: "
            "{mean_before} → {mean}."
        )
        if now > changed.before
        else mark(
            "The weight {place} went from {old} to {new}. Each cell of the map has lost "
            "{change} × the pixel {place}, most where that is bright. Mean of the map: "
            "{mean_before} → {mean}."
        )
    )
    return say(
        words,
        place=_place(changed, len(kernel)),
        old=_weight(changed.before),
        new=_weight(now),
        change=_weight(abs(now - changed.before)),
        mean_before=number(float(before.mean())),
        mean=mean,
    )


def _weight(weight: float) -> str:
    """Write a weight as it is typed: ``−1``, ``0.5``, ``1,000,000``."""
    text = f"{weight:,.0f}" if abs(weight) >= 10_000 else f"{weight:.4g}"
    return localised(text).replace("-", "−")


def _place(changed: ChangedWeight, side: int) -> str:
    if side == len(_PLACES):
        return say(_PLACES[changed.row][changed.column])
    return say(
        "in row {row} and column {column} of the kernel",
        row=changed.row + 1,
        column=changed.column + 1,
    )
