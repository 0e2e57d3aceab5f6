"""Show a grid of channels as an instrument: hover reads, a click or Enter picks a channel."""

from collections.abc import Callable

import streamlit as st

from hookviz.drawing.grid import Grid
from hookviz.drawing.tile_facts import tile_facts
from hookviz.ui.components.files import show
from hookviz.ui.state import Cell


def mosaic(
    grid: Grid,
    alt: str,
    on_pick: Callable[[int, Cell | None], None],
    *,
    key: str,
    height: int,
    chosen: int | None = None,
) -> None:
    """Show a grid, to hover over its tiles and pick their channels.

    Each pick counts, however quickly the next one follows: of two requests that wait for a run
    Streamlit keeps the newer one's trigger. So the browser sends picks until they were taken.

    Args:
        grid: the channels.
        alt: what they are, for who can't see them.
        on_pick: gets the channel that a person picks up, and the cell where it was by pointer.
        key: of the component in Streamlit's state.
        height: pixels that the tiles may take.
        chosen: the channel that is framed, if any.
    """
    taken = f"{key} taken"  # the number of the last pick that was

    def picked(sent: object) -> None:
        for each in sent if isinstance(sent, list) else ():
            match each:
                case {"number": int(number), "channel": int(channel), "cell": cell}:
                    if number > st.session_state.get(taken, 0):
                        st.session_state[taken] = number
                        on_pick(channel, _cell(cell))

    facts = tile_facts(grid, alt, grid.sprite) | {
        "height": height,
        "chosen": chosen,
        "taken": st.session_state.get(taken, 0),
    }
    show("mosaic", key, facts, grid.sprite, picked=picked)


def _cell(sent: object) -> Cell | None:
    match sent:
        case [int(row), int(column)]:
            return row, column
    return None
