"""Draw a grid's numbered tiles into matplotlib axes of a person's own."""

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from hookviz.drawing.colormaps import GAP_LEVEL, LEVELS
from hookviz.drawing.layout import Geometry, mosaic
from hookviz.errors import HookVizError, SettingError
from hookviz.language.saying import say

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable

    from hookviz.drawing.grid import Grid  # whose method draws here

_TILE_PX = 64  # at least, so that gaps and the room for numbers are small beside a cell
_NUMBER_PT, _LEAST_PT = 7.0, 4.0  # a smaller number can't be read


def draw(grid: "Grid", axes: "Axes") -> "ScalarMappable":
    """Draw the tiles; `Grid.draw` says what is drawn and what is refused."""
    from matplotlib.axes import Axes  # noqa: PLC0415 - see `figures.new_figure`

    if not isinstance(axes, Axes):
        raise SettingError(
            say(
                "axes are of the type {kind}, not matplotlib's Axes; figure.add_subplot() gives "
                "such axes.",
                kind=type(axes).__name__,
            )
        )
    scale = mappable(grid)
    geometry, size = _fit(grid, axes)
    picture = grid.palette[mosaic(grid.levels, geometry, GAP_LEVEL)]
    axes.imshow(picture, interpolation="nearest")
    axes.set_axis_off()
    if geometry.header:
        for position, channel in enumerate(grid.order):
            left, top, _, _ = geometry.box(position)
            corner = left - 0.5, top - 0.5  # of the tile's first dot
            axes.text(*corner, str(channel), fontsize=size, ha="left", va="bottom")
    return scale


def mappable(grid: "Grid") -> "ScalarMappable":
    """Return the scale of the tiles shown, in the grid's own colours.

    Raises:
        HookVizError: they have more than one.
    """
    low, high = grid.limits.low[grid.order], grid.limits.high[grid.order]
    if (low != low[0]).any() or (high != high[0]).any():
        raise HookVizError(
            say(
                "Each channel of this grid has its own scale, and no colour bar is true of all. "
                "make_grid(…, scale='layer') has one scale."
            )
        )
    from matplotlib.cm import ScalarMappable  # noqa: PLC0415 - see `figures.new_figure`
    from matplotlib.colors import ListedColormap, Normalize  # noqa: PLC0415

    scale = Normalize(float(low[0]), float(high[0]))
    return ScalarMappable(scale, ListedColormap(grid.palette[:LEVELS] / 255.0))


def _fit(grid: "Grid", axes: "Axes") -> tuple[Geometry, float]:
    """Return where the tiles lie, in dots of their picture, and the size of their numbers."""
    base = grid.geometry
    zoom = max(1, ceil(_TILE_PX / max(base.tile_height, base.tile_width)))
    gap = max(1, round(max(base.tile_height, base.tile_width) * zoom / 16))
    geometry = replace(base, magnification=zoom, gap=gap, header=0)
    box = axes.get_window_extent().transformed(axes.figure.dpi_scale_trans.inverted())
    wide, high = box.width * 72, box.height * 72  # points
    high -= base.rows * _NUMBER_PT * 1.25
    dot = max(0.0, min(wide / geometry.width, high / geometry.height))  # points, with the headers
    digits = len(str(int(grid.order.max())))
    size = min(_NUMBER_PT, base.tile_width * zoom * dot / (digits * 0.65))  # 0.64 is a digit wide
    if size < _LEAST_PT:
        return geometry, size
    return replace(geometry, header=ceil(size * 1.25 / dot)), size
