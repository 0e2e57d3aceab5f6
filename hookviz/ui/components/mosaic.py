"""Show a grid of channels as an instrument: hover reads, a click or Enter picks a channel."""

from collections.abc import Callable

from hookviz.drawing.grid import Grid, tile_facts
from hookviz.ui.components.files import each_once, mount
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

    Each pick counts, however quickly the next one follows.

    Args:
        grid: the channels.
        alt: what they are, for who can't see them.
        on_pick: gets the channel that a person picks up, and the cell where it was by pointer.
        key: of the component in Streamlit's state.
        height: pixels that the tiles may take.
        chosen: the channel that is framed, if any.
    """

    def picked(sent: object) -> None:
        match sent:
            case {"channel": int(channel), "cell": [int(row), int(column)]}:
                on_pick(channel, (row, column))
            case {"channel": int(channel)}:
                on_pick(channel, None)

    facts = tile_facts(grid, alt, grid.sprite) | {"height": height, "chosen": chosen}
    mount("mosaic", key, facts, grid.sprite, picked=each_once(key, picked))
