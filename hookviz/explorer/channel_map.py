"""Describe one channel's map: its picture, its exact values, its colour bar."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.grid import Grid
from hookviz.explorer.encoding import float32_text
from hookviz.language.saying import say
from hookviz.markup import data_url

MOST_VALUES = 1 << 16
"""Cells of a map whose values are sent along, 350 kB as text; of a larger one only the colours."""


def channel_map(grid: Grid, channel: int, values: NDArray[np.float32]) -> dict[str, Any]:
    """Describe a channel's map in the grid's colours.

    Args:
        grid: the layer's channels as drawn.
        channel: number of one that it shows.
        values: its values, ``(H, W)``.
    """
    rows, columns = values.shape
    return {
        "picture": data_url(grid.channel_png(channel, 1)),
        "says": say(
            "The map of channel {channel}: arrow keys move, Enter looks at a cell.",
            channel=channel,
        ),
        "rows": rows,
        "columns": columns,
        "values": float32_text(values) if values.size <= MOST_VALUES else None,
        "bar": data_url(grid.bar()),
        "ticks": [[fraction, label] for fraction, label in grid.ticks_of(channel)],
    }
