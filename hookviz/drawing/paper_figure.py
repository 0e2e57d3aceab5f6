"""Draw chosen channels of captures as a figure for a paper, in centimetres.

`hookviz.drawing.paper_sheet` places them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hookviz.drawing.figures import check_dpi, width_in_points
from hookviz.drawing.grid import Grid, make_grid
from hookviz.drawing.paper_sheet import Sheet
from hookviz.errors import HookVizError, SettingError
from hookviz.language.saying import joined, say
from hookviz.types import Capture

Channels = Iterable[int] | Mapping[str, Iterable[int]]


def figure(
    captures: Capture | Sequence[Capture],
    layers: str | Sequence[str],
    channels: Channels,
    *,
    width_cm: float = 8.5,
    limits: tuple[float, float] | None = None,
    colormap: str | None = None,
    dpi: int = 300,
    depth: int | None = None,
) -> Figure:
    """Draw channels of one or several captures as a figure for a paper, `width_cm` wide.

    Each row is a capture: its input picture, then the channels of each layer. Layer names and
    channel numbers stand above; the one colour bar below has the scale of every tile. Text has 7
    points. As PDF and SVG the figure has every cell, as PNG where it has as many dots. Inputs
    without a picture, such as tensors, are left out.

    Args:
        captures: what `capture` gives, of one image or of several.
        layers: written addresses of activations, ``(C, H, W)``, that each capture has.
        channels: their numbers, in order, for every layer; or a dict of those of each layer.
        width_cm: of the figure, 8.5 for a column and 17 for a page; its height follows.
        limits: values of the end colours; without, the lowest and the highest value drawn, and for
            a diverging colormap such as ``"RdBu_r"`` as far below zero as above.
        colormap: one of `COLORMAPS`; without, ``"viridis"``.
        dpi: dots per inch of a PNG.
        depth: which slice of volumes, from 0.

    Raises:
        HookVizError: there is no capture or layer, or an activation is no ``(C, H, W)``.
        UnknownLayerError: a capture has no such layer.
        SettingError: an option means nothing, or the figure is too narrow for its channel numbers.

    >>> model = hookviz.load_model("shapesnet")
    >>> cap = hookviz.capture(model, "assets/samples/star.jpg")
    >>> paper = hookviz.figure(cap, "stem.first.conv", [3, 17], limits=(-5, 5))
    >>> [text.get_text() for text in paper.texts][:4]  # paper.savefig("figure.pdf")
    ['stem.first.conv', 'input', 'channel 3', 'channel 17']
    """
    check_dpi(dpi)
    width = width_in_points(width_cm)
    rows = [captures] if isinstance(captures, Capture) else list(captures)
    names = [layers] if isinstance(layers, str) else [*map(str, layers)]
    if not rows or not names or not all(isinstance(each, Capture) for each in rows):
        raise HookVizError(
            say("A figure needs one capture or more, which `capture` makes, and a layer or more.")
        )
    chosen = _by_layer(channels, names)

    def grids_on(limits: tuple[float, float] | None) -> list[list[Grid]]:
        options: Any = {"limits": limits, "colormap": colormap, "depth": depth}
        return [
            [make_grid(row[name], channels=chosen[name], **options) for name in names]
            for row in rows
        ]

    grids = grids_on(_shared_limits(grids_on(None)) if limits is None else limits)
    return Sheet([row.model_input.picture for row in rows], names, grids, width, dpi).draw()


def _by_layer(channels: Channels, names: Sequence[str]) -> Mapping[str, Iterable[int]]:
    """Return the channels of each layer; `make_grid` refuses what are none.

    Raises:
        SettingError: a layer has none.
    """
    if not isinstance(channels, Mapping):
        listed = tuple(channels) if isinstance(channels, Iterable) else channels
        return dict.fromkeys(names, listed)
    for name in names:
        if name not in channels:
            raise SettingError(
                say(
                    "channels= lists none for {layer}; it lists some for {layers}.",
                    layer=name,
                    layers=joined(map(str, channels)),
                )
            )
    return channels


def _shared_limits(grids: Sequence[Sequence[Grid]]) -> tuple[float, float]:
    """Return the lowest and highest finite value shown; of diverging colours ± the larger size."""
    shown = [(grid.stats, grid.order) for row in grids for grid in row]
    lowest = np.concatenate([stats.minimum[order] for stats, order in shown])
    highest = np.concatenate([stats.maximum[order] for stats, order in shown])
    low, high = map(float, np.nan_to_num([np.fmin.reduce(lowest), np.fmax.reduce(highest)]))
    if grids[0][0].colormap.diverging:
        high = max(abs(low), abs(high))
        low = -high
    around = 0.0 if low < high else abs(low) / 2 or 0.5
    return low - around, high + around
