"""Show one map, large: exact values under the pointer, and a click looks at a cell."""

import base64
from collections.abc import Callable

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz.drawing.grid import Grid
from hookviz.language.saying import say
from hookviz.markup import data_url
from hookviz.ui.components.files import component, packed

_MOST_VALUES = 1 << 16  # that travel with the picture: 350 kB as text


def show_map(
    grid: Grid,
    channel: int,
    values: NDArray[np.float32],
    cell: tuple[int, int],
    on_pick: Callable[[tuple[int, int]], None],
    *,
    key: str = "map",
) -> None:
    """Show a channel's values ``(H, W)`` in the grid's colours; `on_pick` gets the cell chosen."""

    def picked() -> None:
        match st.session_state[key].get("picked"):
            case [int(row), int(column)]:
                on_pick((row, column))

    rows, columns = values.shape
    numbers = base64.b64encode(values.astype("<f4").tobytes()).decode()
    component("map", css="mosaic.css")(
        key=key,
        data=packed(
            {
                "picture": data_url(grid.channel_png(channel, 1)),
                "says": say(
                    "The map of channel {channel}: arrow keys move, Enter looks at a cell.",
                    channel=channel,
                ),
                "rows": rows,
                "columns": columns,
                "values": numbers if values.size <= _MOST_VALUES else None,
                "cell": list(cell),
                "bar": data_url(grid.bar()),
                "ticks": [[fraction, label] for fraction, label in grid.ticks_of(channel)],
            }
        ),
        on_picked_change=picked,
    )
