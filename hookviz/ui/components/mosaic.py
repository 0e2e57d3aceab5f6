"""Show the grid of channels as an instrument: hover reads, a click or Enter picks a channel."""

from collections.abc import Callable
from typing import Literal

import streamlit as st

from hookviz.drawing.grid import Grid
from hookviz.drawing.pair import Pair
from hookviz.drawing.patch_sheet import PatchSheet
from hookviz.drawing.tile_facts import channel_facts, geometry_facts, tile_facts
from hookviz.ui.components.files import component, packed

Cell = tuple[int, int]
"""Row and column of a map."""

Face = Literal["a", "b", "split"]
"""What each tile shows of a pair: A, B, or A at the left and B at the right."""


def mosaic(
    grid: Grid,
    alt: str,
    on_pick: Callable[[int, Cell | None], None],
    *,
    on_layer: Callable[[str], None] | None = None,
    key: str = "mosaic",
    height: int | None = None,
    chosen: int | None = None,
    pair: Pair | None = None,
    face: Face = "b",
    patches: PatchSheet | None = None,
) -> None:
    """Show the grid as wide as the page, to hover over its tiles and pick their channels.

    `on_pick` gets the channel that a person picks up, and the cell where it was by pointer. Without
    a `height` in pixels it is as high as the window, "/" and the arrows reach it from anywhere, and
    the channel in the link is framed, not the `chosen` one; `on_layer` gets the name of a layer
    that is picked in the tree at the side, so that it is this part of the page that runs. Of a
    `pair` of one shape whose B the grid is, each tile shows its `face`, and the key F flips it.
    With `patches` each channel's tile is one of those, in which no cell is picked.
    """

    def picked() -> None:
        match st.session_state[key].get("picked"):
            case {"channel": int(channel), "cell": [int(row), int(column)]} if patches is None:
                on_pick(channel, (row, column))
            case {"channel": int(channel)}:
                on_pick(channel, None)

    def led() -> None:
        name = st.session_state[key].get("layer")
        if on_layer is not None and isinstance(name, str):
            on_layer(name)

    # Without what a click changes, so that the browser has it already when the grid is shown again.
    sprite = patches.png if patches else pair.sprite if pair else grid.sprite
    of_pair = None if pair is None else {"face": face, "stats": channel_facts(pair.a)}
    facts = tile_facts(grid, alt, sprite) | {"height": height, "pair": of_pair}
    facts["chosen"] = None if chosen is None else str(chosen)
    if patches is not None:  # whose colours are no values
        facts |= {"geometry": geometry_facts(patches.geometry), "palette": []}
    data = packed(facts, sprite)
    component("mosaic")(key=key, data=data, on_picked_change=picked, on_layer_change=led)
