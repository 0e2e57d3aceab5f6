"""Put a followed pass into the blocks of its layers, and lay these out from left to right.

1. Every call of a layer, and every join of branches, is one part; the call of a block holds those
   that ran in it. A line leads from part to part; between parts of different blocks it leads to the
   border of the one, along the blocks around, and in from the border of the other.
2. A block's parts are drawn in units of its own, and its card shows that drawing at a scale that
   fits. So a block is as large on the map as a layer or a few, however much is in it, and zooming
   in shows its parts.
3. Ranks and the order in a rank are those of layered drawing (Sugiyama, Tagawa and Toda, IEEE
   Transactions on Systems, Man, and Cybernetics 11(2), 1981), by ``fast-sugiyama``.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from fast_sugiyama import from_edges

from hookviz.explaining.network_map.followed_pass import IMAGE, BlockCall, ExecutionTrace, LayerStep
from hookviz.types import ActivationKey

ENTRY, EXIT = -1, -2
"""Where a part's lines come in, and where they go out, among the numbers of its parts."""


@dataclass(frozen=True, slots=True)
class Part:
    """A call of a layer, a join, or a call of a block with its parts.

    Attributes:
        address: the call; of a join its function and how often that was one before.
        kind: the module's class; of a join empty.
        step: of a layer or a join its number in the pass, from 1; of a block 0.
        shape: of its output, as people write it, the batch included.
        parts: of a block, in the order in which they ran.
        lines: between the parts by their numbers, from 0; `ENTRY` and `EXIT` are its borders.
    """

    address: ActivationKey
    kind: str
    step: int
    shape: str
    parts: tuple["Part", ...] = ()
    lines: tuple[tuple[int, int], ...] = ()

    @property
    def is_join(self) -> bool:
        """Return whether it is a function that brings branches together."""
        return self.step > 0 and not self.kind

    def leaves(self) -> Iterable["Part"]:
        """Yield the layers and joins in it, in the order in which they ran."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()


_FEWEST_PARTS = 6  # of the map, as long as any of them is a block


def network_map(trace: ExecutionTrace, network: str = "") -> Part:
    """Return the network as a part: its blocks, their layers, and the lines between them.

    A block of one part alone is that part. Where the network itself has few parts, such as VGG's
    ``features`` and ``classifier``, the parts of the largest of them lie beside the others.

    `trace` is of a pass that was followed with its joins, `network` the class of the network.

    >>> steps = [LayerStep(ActivationKey("a"), "Conv2d", 0, frozenset((IMAGE,)), "", "1×2×4×4")]
    >>> network_map(ExecutionTrace(tuple(steps), (), frozenset((1,)))).lines
    ((-1, 0), (0, -2))
    """
    steps = trace.steps
    root = BlockCall(ActivationKey(""), network, -1, 1, "", len(steps))
    ran = [block for block in trace.blocks if block.first <= block.last]
    whole = _Box(root, ran, steps)
    while len(whole.inside) < _FEWEST_PARTS and (largest := whole.largest()) is not None:
        ran = [block for block in ran if block is not largest.call]
        whole = _Box(root, ran, steps)
    for number, step in enumerate(steps, 1):
        for source in step.sources:
            whole.connect(source, number)
    for number in trace.output:
        whole.connect(number, None)
    return whole.part()


def shares_along(
    part: Part, lines: Mapping[tuple[int, int | None], float]
) -> dict[ActivationKey, dict[tuple[int, int], float]]:
    """Return what goes along each line of a map, by the block that it is drawn in.

    `lines` are those of `hookviz.explaining.network_map.class_paths.ClassPaths`: the share from a
    step to a step, from `IMAGE`, or to None, the network's output.
    """
    found: dict[ActivationKey, dict[tuple[int, int], float]] = {}
    place = {leaf.step: number for number, each in enumerate(part.parts) for leaf in each.leaves()}
    inner: dict[int, dict[tuple[int, int | None], float]] = {}
    here = found.setdefault(part.address, {})
    for (source, target), share in lines.items():
        begin, end = place.get(source, ENTRY), EXIT if target is None else place.get(target, EXIT)
        if begin != end:
            here[begin, end] = here.get((begin, end), 0.0) + share
        for number in {begin, end} - {ENTRY, EXIT}:
            inner.setdefault(number, {})[source, target] = share
    for number, those in inner.items():
        if part.parts[number].parts:
            found |= shares_along(part.parts[number], those)
    return found


class _Box:
    """A block call with the boxes and steps that ran in it, in order."""

    def __init__(
        self, call: BlockCall, blocks: Sequence[BlockCall], steps: Sequence[LayerStep]
    ) -> None:
        self.call = call
        self.steps = steps
        self.inside: list[_Box | int] = []
        self.lines: dict[tuple[int, int], None] = {}
        self.place: dict[int, int] = {}  # of each step, which of what is inside it is in
        number = call.first
        left = list(blocks)
        while number <= call.last:
            here: _Box | int = number
            if left and left[0].first == number:
                block = left.pop(0)
                parts = [each for each in left if each.last <= block.last]
                left = left[len(parts) :]
                if not _is_step(block, parts, steps):
                    here = _Box(block, parts, steps)
            last = here.call.last if isinstance(here, _Box) else number
            for step in range(number, last + 1):
                self.place[step] = len(self.inside)
            self.inside.append(here)
            number = last + 1

    def connect(self, source: int | None, target: int | None) -> None:
        """Draw a line from a step to a step; None and `IMAGE` are outside of it."""
        begin = ENTRY if source in (None, IMAGE) else self.place.get(source or 0, ENTRY)
        end = EXIT if target is None else self.place.get(target, EXIT)
        if begin == end:
            inner = self.inside[begin]
            assert isinstance(inner, _Box), "no call takes in what it puts out itself"
            inner.connect(source, target)
            return
        self.lines[begin, end] = None
        if begin >= 0 and isinstance(inner := self.inside[begin], _Box):
            inner.connect(source, None)
        if end >= 0 and isinstance(inner := self.inside[end], _Box):
            inner.connect(None, target)

    def largest(self) -> "_Box | None":
        """Return the block in it that holds the most steps, if any."""
        boxes = [each for each in self.inside if isinstance(each, _Box)]
        return max(boxes, key=lambda box: box.call.last - box.call.first, default=None)

    def part(self) -> Part:
        """Return it as a part; of one part alone that one."""
        parts = tuple(
            each.part() if isinstance(each, _Box) else _leaf(self.steps, each)
            for each in self.inside
        )
        if len(parts) == 1 and self.call.depth >= 0:
            return parts[0]
        call = self.call
        return Part(call.address, call.kind, 0, call.output_shapes, parts, tuple(self.lines))


def _is_step(block: BlockCall, parts: Sequence[BlockCall], steps: Sequence[LayerStep]) -> bool:
    """Return whether a block called no layer and so is a step itself."""
    return (
        not parts and block.first == block.last and steps[block.first - 1].address == block.address
    )


def _leaf(steps: Sequence[LayerStep], number: int) -> Part:
    step = steps[number - 1]
    return Part(step.address, step.kind, number, step.output_shapes)


_MOST_PASSED = 40  # ranks that lines pass on their way, before they are arcs


@dataclass(frozen=True, slots=True)
class _Ranks:
    """Ranks and rows of a drawing.

    Attributes:
        of: rank from the left and row from the top of each part, both from 0; rows may be between.
        bends: of each line those of the ranks that it passes.
    """

    of: Mapping[int, tuple[int, float]]
    bends: Mapping[tuple[int, int], Sequence[tuple[int, float]]]


def _ranks_of(count: int, lines: Sequence[tuple[int, int]]) -> _Ranks:
    """Give each part its rank and row, and each line those that it passes.

    Where everything leads to everything after it, as in a DenseNet, lines are arcs above the parts.
    """
    ways = {*lines, *_to_borders(count, lines)}
    edges = sorted((f"p{begin}", f"p{end}") for begin, end in ways)
    drawings = from_edges(edges, dummy_vertices=True, vertex_spacing=1)
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
    return _Ranks(parts, bends)


def _to_borders(count: int, lines: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield ways that tie what nothing leads to, and what leads nowhere, to the borders.

    They are not drawn. Without them a border would have a rank amid the parts, and a line to it
    would lead through them.
    """
    begins, ends = {begin for begin, _ in lines}, {end for _, end in lines}
    for number in range(count):
        if number not in ends:
            yield ENTRY, number
        if number not in begins:
            yield number, EXIT


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


Point = tuple[float, float]

_GAP = 0.5  # between ranks, where the lines run; a layer's card is 1 wide
_BETWEEN = 0.3  # between cards of a rank
_JOIN = (0.36, 0.36)
_LOW, _HIGH = 1.0, 3.0  # how high a layer's card is: that many of its channels lie in it
_MOST_SIDE = 256  # cells of a map that has the highest card
_WIDE, _TALL = 4.0, 3.0  # what a block's card takes at most
_NARROW = 1.6
_LANE = 0.8  # between bands
_UP = 0.55  # above a band runs its line, over the names of cards
_EDGE = 0.4  # around a drawing in print, with room for a name
_ASPECT, _TALL_ASPECT = 2.0, 0.9  # width over height that a drawing should come close to
_WINDOW = 1.8  # of a window, in which photograph and classes stand beside the drawing
_BESIDE = (1.5, 3.0)  # how wide each of them is at least and at most (map_world.js), and
_FREE = 0.5  # free around it
_MOST_IN_ROW, _FEWEST_IN_ROW = 8, 3  # ranks; the fewest in print and of the outermost drawing


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

    `sides` holds the rows of the map that each step puts out, by its number; a card is as high as
    their logarithm. With `is_even` every layer has one size, as in print, where nobody can zoom in:
    a block's card is then its drawing with an edge around it.
    """
    inside = tuple(lay_out(each, sides, is_even=is_even) for each in part.parts)
    if not inside:
        width, height = _JOIN if part.is_join else (1.0, _height((sides or {}).get(part.step)))
        return PlacedPart(part, 0.0, 0.0, width, height, (width, height))
    cells = _ranks_of(len(inside), part.lines)
    placed, columns = _arrange(inside, cells, _IN_PRINT if is_even else _IN_A_CARD)
    lines = tuple((*line, _points(line, cells, placed, columns)) for line in cells.bends)
    size = columns.size
    width, height = (side + 2 * _EDGE for side in size) if is_even else _card(*size)
    return PlacedPart(part, 0.0, 0.0, width, height, size, placed, lines)


def in_a_tall_window(placed: PlacedPart) -> PlacedPart:
    """Place the cards of the outermost drawing again, for a window that is higher than wide."""
    return _again(placed, lambda width, height: width / height / _TALL_ASPECT)


def in_a_wide_window(placed: PlacedPart) -> PlacedPart:
    """Place them so that they fill a window with the photograph and the classes beside them."""

    def off(width: float, height: float) -> float:
        beside = min(_BESIDE[1], max(_BESIDE[0], height)) + _FREE
        return (width + 2 * beside) / max(height, beside) / _WINDOW

    return _again(placed, off)


def _again(placed: PlacedPart, off: Callable[[float, float], float]) -> PlacedPart:
    """Place the cards of the outermost drawing again, by how far `off` its proportions are."""
    if not placed.inside:
        return placed
    cells = _ranks_of(len(placed.inside), placed.part.lines)
    inside, columns = _arrange(placed.inside, cells, _Breaking(_FEWEST_IN_ROW, 2, off))
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


class _Breaking(NamedTuple):
    """How the ranks of a drawing are broken into bands.

    Attributes:
        most: ranks in a row before that is done.
        least: ranks in a band.
        off: by which factor a width and height are wider than they should be.
    """

    most: int
    least: int
    off: Callable[[float, float], float]


def _off(width: float, height: float) -> float:
    return width / height / _ASPECT


_IN_A_CARD = _Breaking(_MOST_IN_ROW, 3, _off)
_IN_PRINT = _Breaking(_FEWEST_IN_ROW, 3, _off)


def _arrange(
    inside: Sequence[PlacedPart], cells: _Ranks, breaking: _Breaking
) -> tuple[tuple[PlacedPart, ...], _Columns]:
    """Return a drawing's parts in their places, and where its ranks lie.

    A long row goes on below, as the lines of a text do, so that the drawing is as wide as a window.
    """
    ranks = max(rank for rank, _ in cells.of.values()) + 1
    widths = [0.0] * ranks
    for number, (rank, _) in cells.of.items():
        widths[rank] = max(widths[rank], inside[number].width)
    by_rank: list[list[float]] = [[] for _ in range(ranks)]
    for bends in (cells.of.values(), *cells.bends.values()):
        for rank, row in bends:
            by_rank[min(max(rank, 0), ranks - 1)].append(row)
    counts = _band_counts(cells, _banded(widths, by_rank, inside, cells, 1).size, breaking)
    drawings = [_banded(widths, by_rank, inside, cells, count) for count in counts]
    columns = min(drawings, key=lambda each: abs(math.log(breaking.off(*each.size))))
    placed = []
    for number, part in enumerate(inside):
        rank, row = cells.of[number]
        left = columns.lefts[rank] + (widths[rank] - part.width) / 2
        middle = columns.bands[columns.band(rank)].down(row)
        placed.append(replace(part, left=left, top=middle - part.height / 2))
    return tuple(placed), columns


def _band_counts(cells: _Ranks, size: Point, breaking: _Breaking) -> range:
    """Return into how many bands a drawing may be broken: none whose lines are arcs is."""
    are_arcs = any(row < 0 for bends in cells.bends.values() for _, row in bends)
    ranks = max(rank for rank, _ in cells.of.values()) + 1
    if are_arcs or ranks < breaking.most:
        return range(1, 2)
    about = round(math.sqrt(breaking.off(*size)))
    return range(max(1, about - 2), max(2, min(about + 3, ranks // breaking.least + 1)))


def _banded(
    widths: Sequence[float],
    rows: Sequence[Sequence[float]],
    inside: Sequence[PlacedPart],
    cells: _Ranks,
    count: int,
) -> _Columns:
    """Break the ranks into `count` bands of about the same width."""
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
    line: tuple[int, int], cells: _Ranks, placed: Sequence[PlacedPart], columns: _Columns
) -> tuple[Point, ...]:
    """Return the points that a line leads through, level from the border and to it."""
    points = [*_through(line, cells, placed, columns)]
    if line[0] == ENTRY:
        points.insert(0, (0.0, points[0][1]))
    if line[1] == EXIT:
        points.append((columns.size[0], points[-1][1]))
    return tuple(points)


def _through(
    line: tuple[int, int], cells: _Ranks, placed: Sequence[PlacedPart], columns: _Columns
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
        lane = columns.bands[number + 1].top - _UP
        yield columns.bands[number].end + _GAP / 2, lane
        yield _GAP / 2, lane


def _card(width: float, height: float) -> Point:
    """Return how large the card of a block is whose drawing has that size."""
    wide = min(_WIDE, max(_NARROW, math.sqrt(width / height) * 1.2))
    return wide, min(_TALL, max(1.2, wide * height / width))


def _height(rows: int | None) -> float:
    """Return how high the card of a layer is whose maps have `rows` rows."""
    share = math.log2(max(1, rows or 1)) / math.log2(_MOST_SIDE)
    return _LOW + (_HIGH - _LOW) * min(1.0, share)
