"""Tell in words what another weight of a kernel has done to the map that it makes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hookviz.language.saying import localised, mark, say
from hookviz.lessons.kernels import Kernel
from hookviz.wording import number

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
