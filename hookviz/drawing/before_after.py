"""Draw a layer's maps before and after a change, in the same colours for the same values."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.grid import Grid, make_grid
from hookviz.drawing.panels import GridPanel
from hookviz.drawing.scales import quantise
from hookviz.language.saying import say
from hookviz.wording import number

Map = NDArray[np.float32]


def before_and_after(
    layer: str, before: Map, after: Map, unmoved: str = ""
) -> tuple[GridPanel, GridPanel]:
    """Return two grids that the page flips between in one place.

    Args:
        layer: whose maps they are.
        before: ``(C, H, W)``.
        after: the same.
        unmoved: what is said where nothing changed; else the largest change is said.
    """
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        moved = np.abs(after - before)
    said = unmoved
    if np.nan_to_num(moved).any():
        said = say(
            "largest change {value}; colours as before.", value=number(float(np.nanmax(moved)))
        )
    grids = _alike(layer, before, after)
    return (
        GridPanel(layer, grids[0], layer=layer, state=say("before")),
        GridPanel(layer, grids[1], said, layer, say("after")),
    )


def _alike(title: str, *maps: Map) -> tuple[Grid, ...]:
    """Draw grids of maps, ``(C, H, W)`` each, whose colours stand for the same values."""
    limits = make_grid(np.concatenate(maps), scale="symmetric").limits
    count = len(maps[0])
    shared = replace(limits, low=limits.low[:count], high=limits.high[:count])

    def grid(values: Map) -> Grid:
        drawn = make_grid(values, scale="symmetric", title=title)
        levels = quantise(values, shared.low, shared.high)
        levels.flags.writeable = False
        return replace(drawn, limits=shared, levels=levels)

    return tuple(map(grid, maps))
