"""Draw pages for print that compare: maps of images, shares of patching, similarity of layers."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.colormaps import COLORMAPS, NAN_COLOUR, NAN_WORD, coloured
from hookviz.drawing.figures import new_figure, readable
from hookviz.errors import one_of, shorten
from hookviz.language.saying import say

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure


_MAP_COLUMNS, _MAP_INCHES, _MAP_NAME_LETTERS, _MAP_TEXT_PT = 6, 1.5, 20, 7.0


def maps_figure(
    maps: Mapping[str, NDArray[np.float32]],
    *,
    colormap: str,
    limits: tuple[float, float],
    title: str,
) -> "Figure":
    """Draw maps row by row under the names of their images, with one colour bar.

    Maps are ``(H, W)`` and can differ in size; `limits` are the values of the end colours.
    """
    from matplotlib.cm import ScalarMappable  # noqa: PLC0415 - see `figures.new_figure`
    from matplotlib.colors import Normalize  # noqa: PLC0415

    columns = min(_MAP_COLUMNS, len(maps))
    rows = ceil(len(maps) / columns)
    size = _MAP_INCHES * columns + 1.2, (_MAP_INCHES + 0.25) * rows + 0.4
    figure = new_figure(figsize=size, layout="constrained")
    tiles = figure.subplots(rows, columns, squeeze=False)
    low, high = limits
    for axes in tiles.flat:
        axes.set_axis_off()
    for axes, (name, values) in zip(tiles.flat, maps.items(), strict=False):
        axes.imshow(coloured(values, colormap, low=low, high=high), interpolation="none")
        axes.set_title(shorten(name, _MAP_NAME_LETTERS), fontsize=_MAP_TEXT_PT, parse_math=False)
    bar = figure.colorbar(ScalarMappable(Normalize(low, high), colormap), ax=tiles)
    bar.ax.tick_params(labelsize=_MAP_TEXT_PT)
    figure.suptitle(title, fontsize=9, parse_math=False)
    return readable(figure)


Shares = Mapping[str, NDArray[np.float64]]

_PLOT_COLUMNS = 4  # plots in a row, where each layer has its own
_PLOT_INCHES = 2.6  # inches of each of them
_LEAST_INCHES = 5.0  # inches of width, for the title
_BAR_INCHES = 0.34  # inches of a layer's two bars
_LAYER_LETTERS = 40  # letters of a layer's name
_SHARE, _DIRECT = "#1f77b4", "#ff7f0e"
_COLOURS = "RdBu_r"  # of cells: blue below 0, red above


def patching_figure(shares: Shares, direct: Shares, *, title: str = "") -> "Figure":
    """Draw a bar for each layer or channel, or a map of cells for each layer.

    Bars have the gradient's estimate beside them. Maps have one scale in common, symmetric about 0.

    The shares of a layer are ``()``, ``(C,)`` or ``(H, W)``; other cells are drawn row by row.
    `direct` has the gradient's estimates, of the same shapes.
    """
    if all(each.ndim == 0 for each in shares.values()):
        figure = new_figure(figsize=(7.0, 1.4 + _BAR_INCHES * len(shares)), layout="constrained")
        _draw_layers(figure.add_subplot(), shares, direct)
    else:
        rows = ceil(len(shares) / _PLOT_COLUMNS)
        size = (
            max(_LEAST_INCHES, _PLOT_INCHES * min(_PLOT_COLUMNS, len(shares)) + 0.6),
            _PLOT_INCHES * rows + 0.8,
        )
        figure = new_figure(figsize=size, layout="constrained")
        grid = figure.subplots(rows, min(_PLOT_COLUMNS, len(shares)), squeeze=False)
        for axes in grid.flat[len(shares) :]:
            axes.set_axis_off()
        top = max(float(np.abs(each).max(initial=0.0)) for each in shares.values()) or 1.0
        for axes, (layer, values) in zip(grid.flat, shares.items(), strict=False):
            axes.set_title(shorten(layer, _LAYER_LETTERS), fontsize=8)
            _draw_parts(axes, values, direct[layer], top)
        _explain(figure, list(grid.flat)[: len(shares)])
    figure.suptitle(title, fontsize=10, wrap=True)
    return figure


def heads_figure(shares: Shares, *, title: str = "") -> "Figure":
    """Draw the shares of attention heads as one map: a row for each layer, a column for each head.

    The shares of a layer are ``(heads,)``; layers may have different counts.
    """
    values = heads_by_layer(shares)
    heads = values.shape[1]
    top = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    size = (max(_LEAST_INCHES, 2.4 + _BAR_INCHES * heads), 1.4 + _BAR_INCHES * len(shares))
    figure = new_figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(values, cmap=_COLOURS, vmin=-top, vmax=top)
    axes.set_yticks(
        range(len(shares)), [shorten(layer, _LAYER_LETTERS) for layer in shares], fontsize=7
    )
    axes.set_xticks(range(heads), [str(head) for head in range(heads)], fontsize=7)
    axes.set_xlabel(say("attention head"))
    _explain(figure, [axes])
    figure.suptitle(title, fontsize=10, wrap=True)
    return figure


def heads_by_layer(shares: Shares) -> NDArray[np.float64]:
    """Return the shares of heads as ``(layers, heads)``, with NaN behind a layer's last head."""
    values = np.full((len(shares), max(len(each) for each in shares.values())), np.nan)
    for row, each in zip(values, shares.values(), strict=True):
        row[: len(each)] = each
    return values


def _draw_layers(axes: "Axes", shares: Shares, direct: Shares) -> None:
    """Draw two bars for each layer, the first layer at the top."""
    places = np.arange(len(shares))
    for values, at, colour, label in (
        (shares, -0.2, _SHARE, say("share")),
        (direct, 0.2, _DIRECT, say("by gradient")),
    ):
        lengths = [float(value) for value in values.values()]
        axes.barh(places + at, lengths, height=0.4, color=colour, label=label)
    axes.set_yticks(places, [shorten(layer, _LAYER_LETTERS) for layer in shares], fontsize=7)
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.6)
    axes.axvline(1, color="grey", linewidth=0.6, linestyle=":")
    axes.set_xlabel(say("share of the difference that is brought back"))
    axes.legend(fontsize=7)


def _explain(figure: "Figure", plots: Sequence["Axes"]) -> None:
    """Add the scale of cells, or the legend of channels."""
    images = [image for axes in plots for image in axes.images]
    if images:
        words = say("share of the difference that is brought back")
        figure.colorbar(images[0], ax=list(plots), label=words, shrink=0.8)
    else:
        plots[0].legend(fontsize=6)


def _draw_parts(
    axes: "Axes", values: NDArray[np.float64], direct: NDArray[np.float64], top: float
) -> None:
    """Draw the channels of one layer as bars, or its cells as a map."""
    if values.ndim == 1:
        places = np.arange(len(values))
        axes.bar(places, values, width=1.0, color=_SHARE, label=say("share"))
        axes.plot(places, direct, ".", markersize=2, color=_DIRECT, label=say("by gradient"))
        axes.axhline(0, color="black", linewidth=0.6)
        axes.tick_params(labelsize=6)
        return
    cells = values.reshape(-1, values.shape[-1])
    axes.imshow(cells, cmap=_COLOURS, vmin=-top, vmax=top)
    axes.set_xticks([])
    axes.set_yticks([])


_MOST_NUMBERS = 12  # rows and columns up to which each cell has its number written in it
_MOST_NAMES = 60  # that stand along an axis one by one
_AXIS_LETTERS = 32  # letters of a name
_CELL_INCHES = (0.16, 0.6)  # inches, at the least and at the most
_LEAST_CELLS_INCHES, _MOST_CELLS_INCHES = 1.6, 7.0  # inches that the cells of one direction take
_BORDER_INCHES = (3.0, 2.4)  # inches about them, for names and the colour bar


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

    So two pictures can be compared. Values below zero have the colour of zero, and NaN one of its
    own. Each number is written into its cell where there are 12 rows and columns at most.

    The matrix is ``(R, C)``, at most 1; `rows` are named from the top and `columns` from the left.

    Raises:
        SettingError: `colormap` is not one of `COLORMAPS`.
    """
    name = COLORMAPS[one_of("colormap", colormap, COLORMAPS)].name
    cell = min(_CELL_INCHES[1], max(_CELL_INCHES[0], _MOST_CELLS_INCHES / max(matrix.shape)))
    high, wide = (max(_LEAST_CELLS_INCHES, cell * count) for count in matrix.shape)
    figure = new_figure(
        figsize=(wide + _BORDER_INCHES[0], high + _BORDER_INCHES[1]), layout="constrained"
    )
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
    return positions, [shorten(names[position], _AXIS_LETTERS) for position in positions]


def _write_numbers(axes: "Axes", matrix: NDArray[np.float64], colours: "Colormap") -> None:
    for (row, column), value in np.ndenumerate(matrix):
        red, green, blue, _ = colours(min(1.0, max(0.0, value)))
        bright = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
        text = "–" if np.isnan(value) else f"{value:z.2f}".replace("-", "−")
        ink = "black" if bright or np.isnan(value) else "white"
        axes.text(column, row, text, ha="center", va="center", fontsize=7, color=ink)
