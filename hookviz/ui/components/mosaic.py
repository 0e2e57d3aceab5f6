"""The grid of channels as an instrument: hover reads, a click or Enter picks a channel up."""

from collections.abc import Callable
from functools import cache
from typing import Any

import streamlit as st

from hookviz.drawing.grid import Grid
from hookviz.drawing.tile_facts import tile_facts
from hookviz.ui.components.files import packed, script, source


@cache
def _component() -> Any:
    return st.components.v2.component(
        "hookviz_mosaic",
        css=source("mosaic.css"),
        js=script("mosaic_parts.js", "tiles.js", "tiling.js", "mosaic.js"),
    )


Cell = tuple[int, int]
"""Row and column of a map."""


def mosaic(
    grid: Grid,
    alt: str,
    on_pick: Callable[[int, Cell | None], None],
    *,
    on_layer: Callable[[str], None] | None = None,
    key: str = "mosaic",
    height: int | None = None,
) -> None:
    """Show the grid as wide as the page.

    `on_pick` gets the channel that a person picks up, and the cell where it was by pointer. Without
    a `height` in pixels it is as high as the window, "/" and the arrows reach it from anywhere, and
    the channel in the link is framed; `on_layer` gets the name of a layer that is picked in the
    tree at the side, so that it is this part of the page that runs.
    """

    def picked() -> None:
        match st.session_state[key].get("picked"):
            case {"channel": int(channel), "cell": [int(row), int(column)]}:
                on_pick(channel, (row, column))
            case {"channel": int(channel)}:
                on_pick(channel, None)

    def led() -> None:
        name = st.session_state[key].get("layer")
        if on_layer is not None and isinstance(name, str):
            on_layer(name)

    # Without what a click changes, so that the browser has it already when the grid is shown again.
    data = packed(tile_facts(grid, alt) | {"height": height}, grid.sprite)
    _component()(key=key, data=data, on_picked_change=picked, on_layer_change=led)
