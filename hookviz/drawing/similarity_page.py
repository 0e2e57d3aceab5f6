"""Draw how alike layers are: a matrix from 0 to 1 with the layers' names."""

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.colormaps import COLORMAPS, NAN_COLOUR, NAN_WORD
from hookviz.drawing.figures import new_figure
from hookviz.errors import one_of, shorten
from hookviz.language.saying import say

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

_MOST_NUMBERS = 12  # rows and columns up to which each cell has its number written in it
_MOST_NAMES = 60  # that stand along an axis one by one
_LONGEST = 32  # letters of a name
_CELL = (0.16, 0.6)  # inches, at the least and at the most
_SMALLEST, _LARGEST = 1.6, 7.0  # inches that the cells of one direction take
_ROOM = (3.0, 2.4)  # inches about them, for names and the colour bar


def similarity_figure(
    matrix: NDArray[np.float64],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    title: str = "",
    row_title: str = "",
    column_title: str = "",
    colormap: str = "viridis",
) -> "Figure":
    """Draw the matrix with the first row at the top, its colours from 0 to 1 whatever is in it.

    So two pictures can be compared. What is below zero has the colour of zero, and NaN one of its
    own. Each number is written into its cell where there are 12 rows and columns at most.

    Args:
        matrix: ``(R, C)``, at most 1.
        rows: what each row is called, from the top.
        columns: what each column is called, from the left.
        title: what stands above.
        row_title: what the rows are together.
        column_title: what the columns are together.
        colormap: one of `COLORMAPS`.

    Raises:
        SettingError: `colormap` is not one of `COLORMAPS`.
    """
    name = COLORMAPS[one_of("colormap", colormap, COLORMAPS)].name
    cell = min(_CELL[1], max(_CELL[0], _LARGEST / max(matrix.shape)))
    high, wide = (max(_SMALLEST, cell * count) for count in matrix.shape)
    figure = new_figure(figsize=(wide + _ROOM[0], high + _ROOM[1]), layout="constrained")
    axes = figure.add_subplot()
    colours = mpl.colormaps[name].with_extremes(bad=NAN_COLOUR)
    picture = axes.imshow(matrix, cmap=colours, vmin=0, vmax=1, interpolation="nearest")
    if max(matrix.shape) <= _MOST_NUMBERS:
        _write_numbers(axes, matrix, colours)
    positions, names = _thinned(columns)
    # a "$" in a name is a dollar sign
    axes.set_xticks(positions, names, rotation=90, fontsize=7, parse_math=False)
    positions, names = _thinned(rows)
    axes.set_yticks(positions, names, fontsize=7, parse_math=False)
    axes.set_xlabel(column_title, parse_math=False)
    axes.set_ylabel(row_title, parse_math=False)
    axes.set_title(title, fontsize=10, parse_math=False)
    none = (
        say("; {colour} where there is none", colour=say(NAN_WORD))
        if np.isnan(matrix).any()
        else ""
    )
    figure.colorbar(picture, ax=axes, label=say("linear CKA{note}", note=none))
    return figure


def _thinned(names: Sequence[str]) -> tuple[list[int], list[str]]:
    """Thin the names out to as many as can be read; return their positions and texts."""
    positions = [*range(0, len(names), ceil(len(names) / _MOST_NAMES))]
    return positions, [shorten(names[position], _LONGEST) for position in positions]


def _write_numbers(axes: "Axes", matrix: NDArray[np.float64], colours: "Colormap") -> None:
    for (row, column), value in np.ndenumerate(matrix):
        red, green, blue, _ = colours(min(1.0, max(0.0, value)))
        bright = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
        text = "–" if np.isnan(value) else f"{value:z.2f}".replace("-", "−")
        ink = "black" if bright or np.isnan(value) else "white"
        axes.text(column, row, text, ha="center", va="center", fontsize=7, color=ink)
