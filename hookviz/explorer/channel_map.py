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


def channel_map(
    grid: Grid, channel: int, values: NDArray[np.float32], *, is_painted: bool = True
) -> dict[str, Any]:
    """Describe a channel's map in the grid's colours.

    Args:
        grid: the layer's channels as drawn.
        channel: number of one that it shows.
        values: its values, ``(H, W)``.
        is_painted: with its values and its pictures, which who has the layer's values does without.
    """
    rows, columns = values.shape
    said = {
        "says": say(
            "The map of channel {channel}: arrow keys move, Enter looks at a cell.",
            channel=channel,
        ),
        "rows": rows,
        "columns": columns,
        "ticks": [[fraction, label] for fraction, label in grid.ticks_of(channel)],
    }
    if not is_painted:
        return said
    return said | {
        "picture": data_url(grid.channel_png(channel, 1)),
        "values": float32_text(values) if values.size <= MOST_VALUES else None,
        "bar": data_url(grid.bar()),
    }
