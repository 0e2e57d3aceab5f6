"""Show one map, large: exact values under the pointer, and a click looks at a cell."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.grid import Grid
from hookviz.drawing.pictures import encode_jpeg, middle_square
from hookviz.drawing.tile_facts import tile_facts
from hookviz.explorer.encoding import channel_map
from hookviz.markup import data_url
from hookviz.types import Pixels
from hookviz.ui.components.files import each_once, mount
from hookviz.ui.state import Cell


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

    def picked(sent: object) -> None:
        match sent:
            case [int(row), int(column)]:
                on_pick((row, column))

    mount("map", key, channel_map(grid, channel, values) | {"cell": list(cell)}, picked=picked)


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


_SIDE = 96  # pixels, twice what a thumbnail takes on the screen
_QUALITY = 85


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """An image to choose.

    Attributes:
        name: which one it is, for the program.
        title: which one it is, for people.
        picture: what it looks like, as by `thumbnail`.
    """

    name: str
    title: str
    picture: str


def thumbnail(picture: Pixels) -> str:
    """Return the middle square of a picture, RGB uint8 ``(H, W, 3)``, small, as a data URL."""
    return data_url(encode_jpeg(middle_square(picture, _SIDE), quality=_QUALITY), "jpeg")


def gallery(
    key: str,
    label: str,
    thumbnails: Sequence[Thumbnail],
    chosen: str | None,
    on_pick: Callable[[str], None],
) -> None:
    """Show the thumbnails; `on_pick` gets the name of the one that a person chooses.

    Args:
        key: of the component in Streamlit's state.
        label: what the group is called to those who do not see it.
        thumbnails: in the order in which they stand.
        chosen: the name of the one that is marked, if any.
        on_pick: called before the next run of the page.
    """

    def picked(name: object) -> None:
        if isinstance(name, str) and name in {each.name for each in thumbnails}:
            on_pick(name)

    items = [asdict(each) for each in thumbnails]
    mount("gallery", key, {"label": label, "chosen": chosen, "items": items}, picked=picked)
