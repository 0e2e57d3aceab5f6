"""Every channel of an activation in one picture: numbers per channel, order, geometry, mosaic.

Pure NumPy and zlib. An activation is ``(C, H, W)``: C channels, each a map of H × W cells. A
*cell* is one value of a map; a *tile* is one map in the mosaic, its cells drawn as squares of
whole pixels.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.errors import HookVizError, SettingError, nearest_names

Floats = NDArray[np.float64]
Levels = NDArray[np.uint8]

SORTS = {
    "index": "in the layer's own order",
    "max": "highest maximum first",
    "mean": "highest mean first",
    "variance": "highest variance first",
    "zeros": "largest share of zeros first",
}
"""What channels can be sorted by, and how a person says it."""

MAX_WIDTH = 10_000
"""The largest width in pixels that a mosaic can be asked to have."""

_CHUNK = 1 << 15  # values at a time: their float64 copy, 256 kB, stays in the processor's cache
# Against the squared logarithm of (aspect / wanted aspect): what the share of empty places costs,
# and what it costs to have any. 512 channels become 32 × 16, though 27 × 19 fits 1.6 better.
_EMPTY_COST, _RAGGED_COST = 3.0, 0.06


@dataclass(frozen=True, eq=False, slots=True)
class ChannelStats:
    """Numbers per channel over its finite values; NaN where a channel has no finite value.

    Attributes:
        minimum, maximum, mean: float64, ``(C,)``.
        variance: float64, ``(C,)``, the population's: the mean squared distance from the mean.
        zeros: float64, ``(C,)``, the share of values that are exactly 0, from 0 to 1.
        nan: ``(C,)``, how many values are NaN.
        inf: ``(C,)``, how many are +∞ or −∞.
    """

    minimum: Floats
    maximum: Floats
    mean: Floats
    variance: Floats
    zeros: Floats
    nan: NDArray[np.intp]
    inf: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def lowest(self) -> float:
        """The lowest finite value of the layer; NaN where it has none."""
        return float(np.fmin.reduce(self.minimum))

    @property
    def highest(self) -> float:
        """The highest finite value of the layer; NaN where it has none."""
        return float(np.fmax.reduce(self.maximum))


def check_shape(shape: tuple[int, ...]) -> None:
    """Nothing, where `shape` is a ``(C, H, W)`` with something in it.

    Raises:
        HookVizError: it is not; the message says what a grid needs and what to do.
    """
    if len(shape) == 3 and all(shape):
        return
    hint = ""
    if len(shape) == 4:
        hint = " Take one image of the batch first, for example values[0]."
    elif len(shape) == 2:
        hint = " A single map becomes one channel with values[None]."
    elif len(shape) == 3:
        hint = " This one is empty."
    raise HookVizError(f"A grid needs (C, H, W); the shape given is {shape}.{hint}")


def one_of(kind: str, given: object, known: Iterable[str]) -> str:
    """`given`, where it is among the `known` names.

    Raises:
        SettingError: it is not; the message has the nearest names and all choices.
    """
    names = tuple(known)
    if isinstance(given, str) and given in names:
        return given
    near = nearest_names(str(given), names, count=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise SettingError(
        f"There is no {kind} called {str(given)[:80]!r}.{hint} Choose from {', '.join(names)}."
    )


def channel_stats(values: NDArray[np.float32]) -> ChannelStats:
    """The numbers per channel of float32 `values`, ``(C, H, W)``.

    Sums run in float64 and the variance in two passes (distance from the mean, then squares), so
    a large mean doesn't drown a small variance.

    Raises:
        HookVizError: `values` is not ``(C, H, W)`` or is empty.
    """
    check_shape(values.shape)
    rows = np.ascontiguousarray(values, dtype=np.float32).reshape(len(values), -1)
    count, cells = rows.shape
    with np.errstate(invalid="ignore"):
        minimum = rows.min(axis=1).astype(np.float64)
        maximum = rows.max(axis=1).astype(np.float64)
    mean, variance, zeros = np.empty(count), np.empty(count), np.zeros(count)
    nan, inf = np.zeros(count, np.intp), np.zeros(count, np.intp)

    step = max(1, _CHUNK // cells)
    buffer = np.empty((min(step, count), cells))
    for start in range(0, count, step):
        chunk = rows[start : start + step]
        wide = buffer[: len(chunk)]
        with np.errstate(invalid="ignore"):  # channels with NaN or ±∞ are done again below
            wide[...] = chunk
            mean[start : start + step] = wide.mean(axis=1)
            wide -= mean[start : start + step, None]
            # no BLAS: it would wake other threads for so little, and wait on a busy machine
            variance[start : start + step] = np.einsum("ij,ij->i", wide, wide) / cells
        packed = np.packbits(chunk == 0, axis=1)  # counting bits is quicker than summing booleans
        zeros[start : start + step] = np.bitwise_count(packed).sum(axis=1, dtype=np.intp) / cells

    for channel in np.flatnonzero(~np.isfinite(minimum) | ~np.isfinite(maximum)):
        row = rows[channel]
        nan[channel] = np.isnan(row).sum()
        inf[channel] = np.isinf(row).sum()
        kept = row[np.isfinite(row)].astype(np.float64)
        found: tuple[float, ...] = (np.nan,) * 5
        if len(kept):
            found = (kept.min(), kept.max(), kept.mean(), kept.var(), (kept == 0).mean())
        for statistic, number in zip((minimum, maximum, mean, variance, zeros), found, strict=True):
            statistic[channel] = number
    return ChannelStats(minimum, maximum, mean, variance, zeros, nan, inf)


def order(stats: ChannelStats, sort: str = "index", top: int | None = None) -> NDArray[np.intp]:
    """The channel numbers to show, in order, intp, ``(N,)``.

    All but ``"index"`` put the highest first, equal ones by channel number, and channels without
    any finite value last. `top` keeps the first so many, or all where there are fewer.

    Raises:
        SettingError: `sort` is not in `SORTS`, or `top` is not a whole number above 0.
    """
    one_of("sort order", sort, SORTS)
    if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 1):
        raise SettingError(
            f"top={top!r} is not a whole number above 0; this layer has {len(stats)} channels, "
            "and top=None shows them all."
        )
    if sort == "index":
        return np.arange(len(stats))[:top]
    key = {
        "max": stats.maximum,
        "mean": stats.mean,
        "variance": stats.variance,
        "zeros": stats.zeros,
    }[sort]
    return np.argsort(-key, kind="stable")[:top]  # argsort puts NaN last


@dataclass(frozen=True, slots=True)
class Geometry:
    """Where every tile lies in a mosaic, in pixels from its top left corner.

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
        """The (left, top, right, bottom) of a tile; right and bottom are the first pixel past it.

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
        """The (position, row, column) of the cell under pixel (x, y): row and column in its map.

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
    """The geometry that fits `count` tiles best onto a page.

    The number of columns makes width / height come close to `aspect`, against the empty places
    that it leaves in the last row. Cells are magnified by the whole number that brings the mosaic
    closest to `width` pixels across, and to width / aspect pixels down where that is less.

    Raises:
        SettingError: `aspect` is not from 0.05 to 20, or `width` is not from 16 to `MAX_WIDTH`.
    """
    if not _is_number(aspect) or not 0.05 <= aspect <= 20:
        raise SettingError(f"aspect={aspect!r} is not a number from 0.05 to 20; a page has 1.6.")
    if not isinstance(width, int) or isinstance(width, bool) or not 16 <= width <= MAX_WIDTH:
        raise SettingError(f"width={width!r} is not a whole number of pixels, 16 to {MAX_WIDTH}.")
    columns = np.arange(1, count + 1)
    rows = -(-count // columns)
    misfit = np.log(columns * tile_width / (rows * tile_height) / aspect) ** 2
    empty = 1 - count / (rows * columns)
    best = int(np.argmin(misfit + _EMPTY_COST * empty + _RAGGED_COST * (empty > 0)))

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
    """One picture of all tiles, uint8, ``(geometry.height, geometry.width)``.

    `levels` is uint8 ``(N, H, W)``, in the order of the places; gaps, headers and places without a
    tile get `fill`.
    """
    zoom = geometry.magnification
    tiles = levels if zoom == 1 else levels.repeat(zoom, axis=2).repeat(zoom, axis=1)
    count, high, wide = tiles.shape
    rows, columns = geometry.rows, geometry.columns
    down, across = geometry.pitch
    canvas = np.full((rows * down, columns * across), fill, dtype=np.uint8)
    places = canvas.reshape(rows, down, columns, across).swapaxes(1, 2)
    places = places[:, :, geometry.header : geometry.header + high, :wide]
    full, rest = divmod(count, columns)
    places[:full] = tiles[: full * columns].reshape(full, columns, high, wide)
    if rest:
        places[full, :rest] = tiles[full * columns :]
    return canvas[: geometry.height, : geometry.width]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
