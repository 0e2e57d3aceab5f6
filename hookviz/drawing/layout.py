"""Lay channels out as tiles of one picture, and draw the mosaic of them all."""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from hookviz.drawing.statistics import Levels
from hookviz.errors import SettingError
from hookviz.language.saying import say

MAX_WIDTH = 10_000
"""The largest width in pixels that a mosaic can be asked to have."""


# Against the squared logarithm of (aspect / wanted aspect): what the share of empty places costs,
# and what it costs to have any. 512 channels become 32 × 16, though 27 × 19 fits 1.6 better, and 64
# become 8 × 8. This is the layout of the library, its files and its scripts; the page lays the same
# tiles out anew, by the free width and height of its window (`ui/components/mosaic.js`).
_EMPTY_COST, _RAGGED_COST = 3.0, 0.18


@dataclass(frozen=True, slots=True)
class Geometry:
    """Geometry of the tiles of a mosaic, in pixels from its top left corner.

    Attributes:
        count: how many tiles there are, filled row by row.
        rows, columns: how many places there are; the last row can have empty ones at its end.
        tile_height, tile_width: cells of one map.
        magnification: pixels per cell, both ways.
        gap: pixels between neighbouring tiles; there is none around the mosaic.
        header: pixels kept free above each tile, for its number.
    """

    count: int
    rows: int
    columns: int
    tile_height: int
    tile_width: int
    magnification: int
    gap: int
    header: int = 0

    @property
    def pitch(self) -> tuple[int, int]:
        """Pixels (down, across) from one tile to the next."""
        down = self.header + self.tile_height * self.magnification + self.gap
        return down, self.tile_width * self.magnification + self.gap

    @property
    def height(self) -> int:
        """Pixels from the top of the first row to the bottom of the last."""
        return self.rows * self.pitch[0] - self.gap

    @property
    def width(self) -> int:
        """Pixels from the left of the first column to the right of the last."""
        return self.columns * self.pitch[1] - self.gap

    def box(self, position: int) -> tuple[int, int, int, int]:
        """Return the (left, top, right, bottom) of a tile; right and bottom are just past it.

        Raises:
            IndexError: there is no tile at `position`.
        """
        if not 0 <= position < self.count:
            raise IndexError(f"tile {position} of {self.count}")
        row, column = divmod(position, self.columns)
        left, top = column * self.pitch[1], row * self.pitch[0] + self.header
        right = left + self.tile_width * self.magnification
        return left, top, right, top + self.tile_height * self.magnification

    def locate(self, x: float, y: float) -> tuple[int, int, int] | None:
        """Return the (position, row, column) under pixel (x, y): row and column in the tile's map.

        None between tiles, on empty places and outside.
        """
        if not (0 <= x < self.width and 0 <= y < self.height):
            return None
        down, across = self.pitch
        position = int(y // down) * self.columns + int(x // across)
        row = int((y % down - self.header) // self.magnification)
        column = int(x % across // self.magnification)
        inside = 0 <= row < self.tile_height and column < self.tile_width
        return (position, row, column) if inside and position < self.count else None


def lay_out(
    count: int, tile_height: int, tile_width: int, *, aspect: float = 1.6, width: int = 1200
) -> Geometry:
    """Return the geometry that fits `count` tiles best onto a page.

    The number of columns makes width / height come close to `aspect`, against the empty places
    that it leaves in the last row. Cells are magnified by the whole number that brings the mosaic
    closest to `width` pixels across, and to width / aspect pixels down where that is less.

    Raises:
        SettingError: `aspect` is not from 0.05 to 20, or `width` is not from 16 to `MAX_WIDTH`.
    """
    is_number = isinstance(aspect, int | float) and not isinstance(aspect, bool)
    if not is_number or not 0.05 <= aspect <= 20:
        raise SettingError(
            say("aspect={aspect!r} is not a number from 0.05 to 20; a page has 1.6.", aspect=aspect)
        )
    if not isinstance(width, int) or isinstance(width, bool) or not 16 <= width <= MAX_WIDTH:
        raise SettingError(
            say(
                "width={width!r} is not a whole number of pixels, 16 to {limit}.",
                width=width,
                limit=MAX_WIDTH,
            )
        )
    columns = np.arange(1, count + 1)
    rows = -(-count // columns)
    aspect_mismatch = np.log(columns * tile_width / (rows * tile_height) / aspect) ** 2
    empty = 1 - count / (rows * columns)
    best = int(np.argmin(aspect_mismatch + _EMPTY_COST * empty + _RAGGED_COST * (empty > 0)))

    def at(magnification: int) -> Geometry:
        side = sqrt(tile_height * tile_width) * magnification
        gap = min(4, max(2 if side > 8 else 1, round(side / 20)))
        return Geometry(
            count, int(rows[best]), int(columns[best]), tile_height, tile_width, magnification, gap
        )

    def overshoot(geometry: Geometry) -> float:
        return max(geometry.width / width, geometry.height / (width / aspect))

    below = max(1, int(1 / overshoot(at(1))))
    return min(
        (at(factor) for factor in (max(1, below - 1), below, below + 1)),
        key=lambda geometry: abs(log(overshoot(geometry))),
    )


def mosaic(levels: Levels, geometry: Geometry, fill: int) -> Levels:
    """Draw all tiles as one picture, uint8, ``(geometry.height, geometry.width)``.

    `levels` is uint8 ``(N, H, W)``, in the order of the places; gaps, headers and places without a
    tile get `fill`.
    """
    zoom = geometry.magnification
    tiles = levels if zoom == 1 else levels.repeat(zoom, axis=2).repeat(zoom, axis=1)
    count, high, wide = tiles.shape
    rows, columns = geometry.rows, geometry.columns
    down, across = geometry.pitch
    canvas = np.full((rows * down, columns * across), fill, dtype=np.uint8)
    areas = canvas.reshape(rows, down, columns, across).swapaxes(1, 2)
    areas = areas[:, :, geometry.header : geometry.header + high, :wide]
    full, rest = divmod(count, columns)
    areas[:full] = tiles[: full * columns].reshape(full, columns, high, wide)
    if rest:
        areas[full, :rest] = tiles[full * columns :]
    return canvas[: geometry.height, : geometry.width]
