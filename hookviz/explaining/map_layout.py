"""Lay a network's map out from left to right: a drawing in each block's card, no card over another.

A block's parts are drawn in units of its own, and its card shows that drawing at a scale that fits.
So a block is as large on the map as a layer or a few, however much is in it, and who comes nearer
sees into it. Ranks and the order in a rank are those of layered drawing (Sugiyama, Tagawa and Toda,
IEEE Transactions on Systems, Man, and Cybernetics 11(2), 1981), by ``fast-sugiyama``.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fast_sugiyama import from_edges

from hookviz.explaining.network_map import ENTRY, EXIT, Part

Point = tuple[float, float]

_GAP = 0.5  # between ranks, where the lines run; a layer's card is 1 wide
_BETWEEN = 0.3  # between cards of a rank
_JOIN = (0.36, 0.36)
_LOW, _HIGH = 1.0, 3.0  # how high a layer's card is: that many of its channels lie in it
_MOST_SIDE = 256  # cells of a map that has the highest card
_WIDE, _TALL = 4.0, 3.0  # what a block's card takes at most
_NARROW = 1.6
_MOST_PASSED = 40  # ranks that lines pass on their way, before they are arcs


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


def lay_out(part: Part, sides: Mapping[int, int] | None = None) -> PlacedPart:
    """Place a part's cards, and those in them.

    Args:
        part: a network's map.
        sides: rows of the map that a step puts out, by its number; a card is as high as their
            logarithm.
    """
    inside = tuple(lay_out(each, sides) for each in part.parts)
    if not inside:
        width, height = _JOIN if part.is_join else (1.0, _height((sides or {}).get(part.step)))
        return PlacedPart(part, 0.0, 0.0, width, height, (width, height))
    cells = _cells(len(inside), part.lines)
    placed, columns = _place(inside, cells)
    lines = tuple(
        (begin, end, tuple(_through(begin, end, bends, placed, columns)))
        for (begin, end), bends in cells.bends.items()
    )
    size = columns.size
    width, height = _card(*size)
    return PlacedPart(part, 0.0, 0.0, width, height, size, placed, lines)


@dataclass(frozen=True, slots=True)
class _Cells:
    """Ranks and rows of a drawing.

    Attributes:
        of: rank from the left and row from the top of each part, both from 0; rows may be between.
        bends: of each line those of the ranks that it passes.
    """

    of: Mapping[int, tuple[int, float]]
    bends: Mapping[tuple[int, int], Sequence[tuple[int, float]]]


def _cells(count: int, lines: Sequence[tuple[int, int]]) -> _Cells:
    """Give each part its rank and row, and each line those that it passes.

    Where everything leads to everything after it, as in a DenseNet, lines are arcs above the parts.
    """
    edges = sorted((f"p{begin}", f"p{end}") for begin, end in lines)
    drawings = [] if not edges else from_edges(edges, dummy_vertices=True, vertex_spacing=1)
    passed = sum(len(nodes) for nodes, *_ in drawings) - count
    are_arcs = passed > max(_MOST_PASSED, 3 * count)
    if are_arcs:
        chain = [(f"p{each}", f"p{each + 1}") for each in range(count - 1)]
        drawings = from_edges(chain, vertex_spacing=1)
    found: dict[int | str, tuple[int, float]] = {}
    onward: dict[int | str, list[int | str]] = {}
    below = 0.0
    for nodes, _, _, drawn in drawings:
        down = sorted({y for _, (_, y) in nodes}, reverse=True)
        least = min(x for _, (x, _) in nodes)
        rows = {node: (down.index(y), x - least + below) for node, (x, y) in nodes}
        below = max(row for _, row in rows.values()) + 1
        found |= rows
        for begin, end in drawn or ():
            onward.setdefault(begin, []).append(end)
    first = min((found[f"p{each}"][0] for each in range(count) if f"p{each}" in found), default=0)
    parts = {}
    for number in range(count):
        rank, row = found.get(f"p{number}", (number + first, below))  # one without lines: below
        parts[number] = (rank - first, row)
    bends = {}
    for begin, end in lines:
        passes = [] if are_arcs else _bends(f"p{begin}", f"p{end}", onward)
        bends[begin, end] = [(found[each][0] - first, found[each][1]) for each in passes]
    if are_arcs:
        bends |= _arcs(parts, lines)
    return _Cells(parts, bends)


def _bends(
    begin: str, end: str, onward: Mapping[int | str, Sequence[int | str]]
) -> list[int | str]:
    """Return the points that a line passes, which are numbers among the names of parts."""
    for first in onward.get(begin, ()):
        way: list[int | str] = []
        here = first
        while isinstance(here, int):
            way.append(here)
            here = onward[here][0]
        if here == end:
            return way
    return []


def _arcs(
    parts: Mapping[int, tuple[int, float]], lines: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], list[tuple[int, float]]]:
    """Lead the lines that pass parts above them, the longer the higher."""
    last = max(rank for rank, _ in parts.values())
    arcs = {}
    for begin, end in lines:
        start = parts[begin][0] if begin >= 0 else -1
        stop = parts[end][0] if end >= 0 else last + 1
        if stop - start > 1:
            height = -0.6 - 2.4 * (stop - start) / (last + 2)
            arcs[begin, end] = list(dict.fromkeys([(start + 1, height), (stop - 1, height)]))
    return arcs


def _place(
    inside: Sequence[PlacedPart], cells: _Cells
) -> tuple[tuple[PlacedPart, ...], "_Columns"]:
    """Return a drawing's parts in their places, and where its ranks lie."""
    ranks = max(rank for rank, _ in cells.of.values()) + 1
    widths = [0.0] * ranks
    for number, (rank, _) in cells.of.items():
        widths[rank] = max(widths[rank], inside[number].width)
    lefts = [_GAP]
    for width in widths:
        lefts.append(lefts[-1] + width + _GAP)
    every = [row for _, row in cells.of.values()]
    every += [row for bends in cells.bends.values() for _, row in bends]
    pitch = max(part.height for part in inside) + _BETWEEN
    top, bottom = min(every), max(every)
    size = lefts[-1], (bottom - top + 1) * pitch
    columns = _Columns(tuple(lefts), tuple(widths), top - 0.5, pitch, size)
    placed = tuple(
        replace(
            part,
            left=lefts[rank] + (widths[rank] - part.width) / 2,
            top=columns.down(row) - part.height / 2,
        )
        for part, (rank, row) in zip(
            inside, (cells.of[number] for number in range(len(inside))), strict=True
        )
    )
    return placed, columns


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where the ranks of a drawing lie, how far its rows are apart, and how large it is."""

    lefts: tuple[float, ...]
    widths: tuple[float, ...]
    first: float
    pitch: float
    size: Point

    def down(self, row: float) -> float:
        return (row - self.first) * self.pitch


def _through(
    begin: int,
    end: int,
    bends: Sequence[tuple[int, float]],
    placed: Sequence[PlacedPart],
    columns: _Columns,
) -> Iterator[Point]:
    """Yield the points that a line leads through, from border to border."""
    size = columns.size
    middle = size[1] / 2
    if begin == ENTRY:
        yield 0.0, middle
    else:
        yield placed[begin].left + placed[begin].width, placed[begin].top + placed[begin].height / 2
    for rank, row in bends:
        if 0 <= rank < len(columns.widths):
            yield columns.lefts[rank], columns.down(row)
            yield columns.lefts[rank] + columns.widths[rank], columns.down(row)
    if end == EXIT:
        yield size[0], middle
    else:
        yield placed[end].left, placed[end].top + placed[end].height / 2


def _card(width: float, height: float) -> Point:
    """Return how large the card of a block is whose drawing has that size."""
    wide = min(_WIDE, max(_NARROW, math.sqrt(width / height) * 1.2))
    return wide, min(_TALL, max(1.2, wide * height / width))


def _height(rows: int | None) -> float:
    """Return how high the card of a layer is that puts out maps of so many rows."""
    share = math.log2(max(1, rows or 1)) / math.log2(_MOST_SIDE)
    return _LOW + (_HIGH - _LOW) * min(1.0, share)
