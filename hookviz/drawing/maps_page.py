"""Draw maps of several images beside each other, on one scale."""

from collections.abc import Mapping
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.figures import new_figure
from hookviz.drawing.fonts import readable
from hookviz.drawing.palette import coloured
from hookviz.errors import shorten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS, _SIDE_INCHES, _MAX_LETTERS, _TEXT_PT = 6, 1.5, 20, 7.0


def maps_figure(
    maps: Mapping[str, NDArray[np.float32]],
    *,
    colormap: str,
    limits: tuple[float, float],
    title: str,
) -> "Figure":
    """Draw maps row by row under the names of their images, with one colour bar.

    Args:
        maps: ``(H, W)`` by name; they can differ in size.
        colormap: one of `COLORMAPS`.
        limits: values of the end colours.
        title: of the figure.
    """
    from matplotlib.cm import ScalarMappable  # noqa: PLC0415 - see `figures.new_figure`
    from matplotlib.colors import Normalize  # noqa: PLC0415

    columns = min(_COLUMNS, len(maps))
    rows = ceil(len(maps) / columns)
    size = _SIDE_INCHES * columns + 1.2, (_SIDE_INCHES + 0.25) * rows + 0.4
    figure = new_figure(figsize=size, layout="constrained")
    tiles = figure.subplots(rows, columns, squeeze=False)
    low, high = limits
    for axes in tiles.flat:
        axes.set_axis_off()
    for axes, (name, values) in zip(tiles.flat, maps.items(), strict=False):
        axes.imshow(coloured(values, colormap, low=low, high=high), interpolation="none")
        axes.set_title(shorten(name, _MAX_LETTERS), fontsize=_TEXT_PT, parse_math=False)
    bar = figure.colorbar(ScalarMappable(Normalize(low, high), colormap), ax=tiles)
    bar.ax.tick_params(labelsize=_TEXT_PT)
    figure.suptitle(title, fontsize=9, parse_math=False)
    return readable(figure)
