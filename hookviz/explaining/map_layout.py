"""Lay a network's map out from left to right: a drawing in each block's card, no card over another.

A block's parts are drawn in units of its own, and its card shows that drawing at a scale that fits.
So a block is as large on the map as a layer or a few, however much is in it, and who comes nearer
sees into it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hookviz.explaining.map_ranks import Ranks, ranks_of
from hookviz.explaining.network_map import ENTRY, EXIT, Part

Point = tuple[float, float]

_GAP = 0.5  # between ranks, where the lines run; a layer's card is 1 wide
_BETWEEN = 0.3  # between cards of a rank
_JOIN = (0.36, 0.36)
_LOW, _HIGH = 1.0, 3.0  # how high a layer's card is: that many of its channels lie in it
_MOST_SIDE = 256  # cells of a map that has the highest card
_WIDE, _TALL = 4.0, 3.0  # what a block's card takes at most
_NARROW = 1.6
_LANE = 0.5  # between bands
_EDGE = 0.4  # around a drawing in print, with room for a name
_ASPECT, _TALL_ASPECT = 2.0, 0.9  # width over height that a drawing should come close to
_MOST_IN_ROW, _FEWEST_IN_ROW = 8, 3  # ranks; the fewest in print and in a tall window


@dataclass(frozen=True, slots=True)
class PlacedPart:
    """A part with its card, in the units of the drawing that it lies in.

    Attributes:
        part: the part.
        left, top, width, height: of its card.
        size: width and height of the drawing in it, in that drawing's own units; of a part without
            parts its card's.
        inside: the parts of that drawing.
        lines: of that drawing: from, to, and the points that the line leads through.
    """

    part: Part
    left: float
    top: float
    width: float
    height: float
    size: Point
    inside: tuple["PlacedPart", ...] = ()
    lines: tuple[tuple[int, int, tuple[Point, ...]], ...] = ()


def lay_out(
    part: Part, sides: Mapping[int, int] | None = None, *, is_even: bool = False
) -> PlacedPart:
    """Place a part's cards, and those in them.

    Args:
        part: a network's map.
        sides: rows of the map that a step puts out, by its number; a card is as high as their
            logarithm.
        is_even: whether every layer is as large as any other, as in print, where nobody comes
            nearer: a block's card is then its drawing with an edge around it.
    """
    inside = tuple(lay_out(each, sides, is_even=is_even) for each in part.parts)
    if not inside:
        width, height = _JOIN if part.is_join else (1.0, _height((sides or {}).get(part.step)))
        return PlacedPart(part, 0.0, 0.0, width, height, (width, height))
    cells = ranks_of(len(inside), part.lines)
    placed, columns = _place(inside, cells, _FEWEST_IN_ROW if is_even else _MOST_IN_ROW)
    lines = tuple((*line, _points(line, cells, placed, columns)) for line in cells.bends)
    size = columns.size
    width, height = (side + 2 * _EDGE for side in size) if is_even else _card(*size)
    return PlacedPart(part, 0.0, 0.0, width, height, size, placed, lines)


def in_a_tall_window(placed: PlacedPart) -> PlacedPart:
    """Place the cards of the outermost drawing again, for a window that is higher than wide."""
    if not placed.inside:
        return placed
    cells = ranks_of(len(placed.inside), placed.part.lines)
    inside, columns = _place(placed.inside, cells, _FEWEST_IN_ROW, _TALL_ASPECT)
    lines = tuple((*line, _points(line, cells, inside, columns)) for line in cells.bends)
    return replace(placed, size=columns.size, inside=inside, lines=lines)


@dataclass(frozen=True, slots=True)
class _Band:
    """Ranks that lie side by side, below those before them.

    Attributes:
        ranks: the first of them, and the one after the last.
        row: the first row that something lies in.
        top: where the band begins.
        pitch: how far its rows are apart.
        end: where its last rank ends.
    """

    ranks: tuple[int, int]
    row: float
    top: float
    pitch: float
    end: float

    def down(self, row: float) -> float:
        return self.top + (row - self.row + 0.5) * self.pitch


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where the ranks of a drawing lie, and how large it is."""

    lefts: tuple[float, ...]
    widths: tuple[float, ...]
    bands: tuple[_Band, ...]
    size: Point

    def band(self, rank: int) -> int:
        return next((at for at, band in enumerate(self.bands) if rank < band.ranks[1]), -1)


def _place(
    inside: Sequence[PlacedPart], cells: Ranks, most: int, aspect: float = _ASPECT
) -> tuple[tuple[PlacedPart, ...], _Columns]:
    """Return a drawing's parts in their places, and where its ranks lie.

    A row of more than `most` ranks goes on below, as the lines of a text do, so that the drawing is
    as wide as a window.
    """
    ranks = max(rank for rank, _ in cells.of.values()) + 1
    widths = [0.0] * ranks
    for number, (rank, _) in cells.of.items():
        widths[rank] = max(widths[rank], inside[number].width)
    by_rank: list[list[float]] = [[] for _ in range(ranks)]
    for bends in (cells.of.values(), *cells.bends.values()):
        for rank, row in bends:
            by_rank[min(max(rank, 0), ranks - 1)].append(row)
    counts = _band_counts(cells, _banded(widths, by_rank, inside, cells, 1).size, most, aspect)
    drawings = [_banded(widths, by_rank, inside, cells, count) for count in counts]
    columns = min(drawings, key=lambda each: abs(math.log(each.size[0] / each.size[1] / aspect)))
    placed = []
    for number, part in enumerate(inside):
        rank, row = cells.of[number]
        left = columns.lefts[rank] + (widths[rank] - part.width) / 2
        middle = columns.bands[columns.band(rank)].down(row)
        placed.append(replace(part, left=left, top=middle - part.height / 2))
    return tuple(placed), columns


def _band_counts(cells: Ranks, size: Point, most: int, aspect: float) -> range:
    """Return into how many bands a drawing may be broken: none whose lines are arcs is."""
    are_arcs = any(row < 0 for bends in cells.bends.values() for _, row in bends)
    ranks = max(rank for rank, _ in cells.of.values()) + 1
    if are_arcs or ranks < most:
        return range(1, 2)
    about = round(math.sqrt(size[0] / size[1] / aspect))
    return range(max(1, about - 2), max(2, min(about + 3, ranks // 3 + 1)))


def _banded(
    widths: Sequence[float],
    rows: Sequence[Sequence[float]],
    inside: Sequence[PlacedPart],
    cells: Ranks,
    count: int,
) -> _Columns:
    """Break the ranks into so many bands of about the same width."""
    whole = sum(widths) + _GAP * len(widths)
    starts, across = [0], 0.0
    for rank, width in enumerate(widths):
        if len(starts) < count and across + width / 2 > whole * len(starts) / count:
            starts.append(rank)
        across += width + _GAP
    ends = [*starts[1:], len(widths)]
    lefts: list[float] = []
    bands: list[_Band] = []
    top = 0.0
    for start, end in zip(starts, ends, strict=True):
        across = _GAP
        for width in widths[start:end]:
            lefts.append(across)
            across += width + _GAP
        heights = [inside[at].height for at, (rank, _) in cells.of.items() if start <= rank < end]
        pitch = max(heights, default=1.0) + _BETWEEN
        taken = [row for each in rows[start:end] for row in each]
        bands.append(_Band((start, end), min(taken), top, pitch, across - _GAP))
        top += (max(taken) - min(taken) + 1) * pitch + _LANE
    size = max(band.end for band in bands) + _GAP, top - _LANE
    return _Columns(tuple(lefts), tuple(widths), tuple(bands), size)


def _points(
    line: tuple[int, int], cells: Ranks, placed: Sequence[PlacedPart], columns: _Columns
) -> tuple[Point, ...]:
    """Return the points that a line leads through, level from the border and to it."""
    points = [*_through(line, cells, placed, columns)]
    if line[0] == ENTRY:
        points.insert(0, (0.0, points[0][1]))
    if line[1] == EXIT:
        points.append((columns.size[0], points[-1][1]))
    return tuple(points)


def _through(
    line: tuple[int, int], cells: Ranks, placed: Sequence[PlacedPart], columns: _Columns
) -> Iterator[Point]:
    """Yield the points that a line leads through between the borders.

    It leaves a card, and reaches one, level as far as the rank is wide: one above or below may be
    wider.
    """
    (begin, end), ranks = line, cells.of
    here = 0 if begin == ENTRY else columns.band(ranks[begin][0])
    if begin != ENTRY:
        card, rank = placed[begin], ranks[begin][0]
        middle = card.top + card.height / 2
        yield card.left + card.width, middle
        if (right := columns.lefts[rank] + columns.widths[rank]) > card.left + card.width:
            yield right, middle
    for rank, row in cells.bends[line]:
        if not 0 <= rank < len(columns.widths):
            continue
        there = columns.band(rank)
        yield from _to_band(columns, here, there)
        here = there
        middle = columns.bands[there].down(row)
        yield columns.lefts[rank], middle
        yield columns.lefts[rank] + columns.widths[rank], middle
    if end != EXIT:
        card, rank = placed[end], ranks[end][0]
        middle = card.top + card.height / 2
        yield from _to_band(columns, here, columns.band(rank))
        if columns.lefts[rank] < card.left:
            yield columns.lefts[rank], middle
        yield card.left, middle


def _to_band(columns: _Columns, here: int, there: int) -> Iterator[Point]:
    """Yield the points from a band's end, through the lanes below, to where another begins."""
    for number in range(here, there):
        lane = columns.bands[number + 1].top - _LANE / 2
        yield columns.bands[number].end + _GAP / 2, lane
        yield _GAP / 2, lane


def _card(width: float, height: float) -> Point:
    """Return how large the card of a block is whose drawing has that size."""
    wide = min(_WIDE, max(_NARROW, math.sqrt(width / height) * 1.2))
    return wide, min(_TALL, max(1.2, wide * height / width))


def _height(rows: int | None) -> float:
    """Return how high the card of a layer is that puts out maps of so many rows."""
    share = math.log2(max(1, rows or 1)) / math.log2(_MOST_SIDE)
    return _LOW + (_HIGH - _LOW) * min(1.0, share)
