"""Show pictures to pick from: a map's cell, a grid's channel, an image of a row."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.grid import Grid, tile_facts
from hookviz.drawing.pictures import encode_jpeg, middle_square
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
    """Show a map ``(H, W)`` in the grid's colours, with the value under the pointer.

    Args:
        grid: the grid, whose colours and limits apply.
        channel: of the map in the grid.
        values: of the map.
        cell: the marked cell.
        on_pick: gets the cell at a click.
        key: of the component in Streamlit's state.
    """

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
    """Show a grid, whose tiles have values under the pointer and can be picked.

    Every pick is received, however quickly the next one follows.

    Args:
        grid: the channels.
        alt: description for screen readers.
        on_pick: gets the picked channel, and the cell under the pointer if any.
        key: of the component in Streamlit's state.
        height: pixels of the tiles, at most.
        chosen: the channel in a frame, if any.
    """

    def picked(sent: object) -> None:
        match sent:
            case {"channel": int(channel), "cell": [int(row), int(column)]}:
                on_pick(channel, (row, column))
            case {"channel": int(channel)}:
                on_pick(channel, None)

    facts = tile_facts(grid, alt, grid.sprite) | {"height": height, "chosen": chosen}
    mount("mosaic", key, facts, grid.sprite, picked=each_once(key, picked))


_THUMBNAIL_PX = 96  # twice the size on the screen
_QUALITY = 85


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """An image of a gallery.

    Attributes:
        name: for the program.
        title: for people.
        picture: the URL of `thumbnail`.
    """

    name: str
    title: str
    picture: str


def thumbnail(picture: Pixels) -> str:
    """Return the central square of a picture, RGB uint8 ``(H, W, 3)``, small, as a data URL."""
    return data_url(encode_jpeg(middle_square(picture, _THUMBNAIL_PX), quality=_QUALITY), "jpeg")


def gallery(
    key: str,
    label: str,
    thumbnails: Sequence[Thumbnail],
    chosen: str | None,
    on_pick: Callable[[str], None],
) -> None:
    """Show thumbnails in a row.

    Args:
        key: of the component in Streamlit's state.
        label: name of the group for screen readers.
        thumbnails: in their order.
        chosen: name of the marked one, if any.
        on_pick: gets the name of the picked one, before the next run of the page.
    """

    def picked(name: object) -> None:
        if isinstance(name, str) and name in {each.name for each in thumbnails}:
            on_pick(name)

    items = [asdict(each) for each in thumbnails]
    mount("gallery", key, {"label": label, "chosen": chosen, "items": items}, picked=picked)
