"""Compare what each channel puts out inside of a region of the picture with the rest of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.grid import Grid, make_grid, with_channels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RegionSelectivity:
    """How much more each channel of a layer answers inside of a region than outside.

    Formulas are at the lens, `hookviz.lenses.responds_here.run`. A channel without finite values on
    either side has NaN.

    Attributes:
        layer: the layer's name.
        maps: its output, float32 ``(C, H, W)``.
        weights: share of each cell that is marked, 0…1, float64 ``(H, W)``.
        inside: mean of each channel inside, float64 ``(C,)``.
        outside: likewise outside, ``(C,)``.
        deviation: standard deviation of each channel, ``(C,)``.
        score: ``(inside − outside) / deviation``, ``(C,)``; 0 where every cell has one value.
    """

    layer: str
    maps: NDArray[np.float32] = field(repr=False)
    weights: Floats = field(repr=False)
    inside: Floats = field(repr=False)
    outside: Floats = field(repr=False)
    deviation: Floats = field(repr=False)
    score: Floats = field(repr=False)

    @cached_property
    def ranking(self) -> NDArray[np.intp]:
        """Channels that have a score, the highest first; equal ones by number."""
        return highest_first(self.score)

    def grid(self, channels: Sequence[int]) -> Grid:
        """Draw the maps of some channels in that order, in the colours of the whole layer."""
        scale = "symmetric" if np.nanmin(self.maps) < 0 else "layer"
        grid = make_grid(self.maps, scale=scale, title=self.layer)
        return with_channels(grid, self.maps, channels)

    def figure(self, top: int = 16) -> "Figure":
        """Draw the maps of the `top` channels of the highest score as a page for print."""
        return self.grid(self.ranking[:top].tolist()).figure()


def inside_and_outside(maps: NDArray[np.float32], weights: Floats) -> Floats:
    """Return each channel's mean inside, mean outside, deviation and score, ``(4, C)``.

    The score is the difference of the means in the channel's deviations. A channel without finite
    values on either side has NaN.
    """
    numbers = np.full((4, len(maps)), np.nan)
    for channel, values in enumerate(maps):  # one by one, so that the float64 copies stay small
        finite = np.isfinite(values)
        inner, wide = weights[finite], values[finite].astype(np.float64)
        if inner.sum() > 0 and (1 - inner).sum() > 0:
            inside, outside = np.average(wide, weights=inner), np.average(wide, weights=1 - inner)
            varies = wide.min() < wide.max()  # the mean of equal numbers may be off by a rounding
            deviation = wide.std() if varies else 0.0
            score = (inside - outside) / deviation if deviation > 0 else 0.0
            numbers[:, channel] = inside, outside, deviation, score
    return numbers


def highest_first(score: Floats) -> NDArray[np.intp]:
    """Return the channels that have a score, the highest first, equal ones by number."""
    order = np.argsort(-score, kind="stable")
    return order[np.isfinite(score[order])]
