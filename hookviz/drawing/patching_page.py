"""Draw which share of a difference each part of a network brings back."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.figures import new_figure
from hookviz.errors import shorten
from hookviz.language.saying import say

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Shares = Mapping[str, NDArray[np.float64]]

_BESIDE = 4  # plots in a row, where each layer has its own
_SIDE = 2.6  # inches of each of them
_LEAST = 5.0  # inches of width, for the title
_BAR = 0.34  # inches of a layer's two bars
_LONGEST = 40  # letters of a layer's name
_SHARE, _DIRECT = "#1f77b4", "#ff7f0e"
_COLOURS = "RdBu_r"  # of cells: blue below 0, red above


def patching_figure(shares: Shares, direct: Shares, *, title: str = "") -> "Figure":
    """Draw a bar for each layer or channel, or a map of cells for each layer.

    Bars have the gradient's estimate beside them. Maps have one scale in common, symmetric about 0.

    Args:
        shares: by layer, ``()``, ``(C,)`` or ``(H, W)``; other cells are drawn row by row.
        direct: the gradient's estimates, of the same shapes.
        title: what stands above.
    """
    if all(each.ndim == 0 for each in shares.values()):
        figure = new_figure(figsize=(7.0, 1.4 + _BAR * len(shares)), layout="constrained")
        _draw_layers(figure.add_subplot(), shares, direct)
    else:
        rows = ceil(len(shares) / _BESIDE)
        size = (max(_LEAST, _SIDE * min(_BESIDE, len(shares)) + 0.6), _SIDE * rows + 0.8)
        figure = new_figure(figsize=size, layout="constrained")
        grid = figure.subplots(rows, min(_BESIDE, len(shares)), squeeze=False)
        for axes in grid.flat[len(shares) :]:
            axes.set_axis_off()
        top = max(float(np.abs(each).max(initial=0.0)) for each in shares.values()) or 1.0
        for axes, (layer, values) in zip(grid.flat, shares.items(), strict=False):
            axes.set_title(shorten(layer, _LONGEST), fontsize=8)
            _draw_parts(axes, values, direct[layer], top)
        _explain(figure, list(grid.flat)[: len(shares)])
    figure.suptitle(title, fontsize=10, wrap=True)
    return figure


def heads_figure(shares: Shares, *, title: str = "") -> "Figure":
    """Draw the shares of attention heads as one map: a row for each layer, a column for each head.

    Args:
        shares: by layer, ``(heads,)``; layers may have different counts.
        title: what stands above.
    """
    values = heads_by_layer(shares)
    heads = values.shape[1]
    top = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    size = (max(_LEAST, 2.4 + _BAR * heads), 1.4 + _BAR * len(shares))
    figure = new_figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(values, cmap=_COLOURS, vmin=-top, vmax=top)
    axes.set_yticks(range(len(shares)), [shorten(layer, _LONGEST) for layer in shares], fontsize=7)
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
    axes.set_yticks(places, [shorten(layer, _LONGEST) for layer in shares], fontsize=7)
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
