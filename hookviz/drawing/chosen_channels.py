"""Draw a grid again with some of its channels, in an order of their own."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.grid import Grid
from hookviz.drawing.layout import lay_out
from hookviz.drawing.scales import quantise


def with_channels(grid: Grid, maps: NDArray[np.float32], channels: Sequence[int]) -> Grid:
    """Return the grid with some of its channels, as ordered, in the whole layer's colours.

    Args:
        grid: of all `maps`, in any order.
        maps: the values that it draws, ``(C, H, W)``.
        channels: their numbers, one or more.
    """
    chosen = list(channels)
    levels = quantise(maps[chosen], grid.limits.low[chosen], grid.limits.high[chosen])
    levels.flags.writeable = False
    return replace(
        grid,
        order=np.array(channels, np.intp),
        geometry=lay_out(len(channels), *maps.shape[1:]),
        levels=levels,
    )
