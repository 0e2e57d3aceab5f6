"""Rank the parts of a drawing from left to right, and lead its lines between them.

Ranks and the order in a rank are those of layered drawing (Sugiyama, Tagawa and Toda, IEEE
Transactions on Systems, Man, and Cybernetics 11(2), 1981), by ``fast-sugiyama``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fast_sugiyama import from_edges

from hookviz.explaining.network_map import ENTRY, EXIT

_MOST_PASSED = 40  # ranks that lines pass on their way, before they are arcs


@dataclass(frozen=True, slots=True)
class Ranks:
    """Ranks and rows of a drawing.

    Attributes:
        of: rank from the left and row from the top of each part, both from 0; rows may be between.
        bends: of each line those of the ranks that it passes.
    """

    of: Mapping[int, tuple[int, float]]
    bends: Mapping[tuple[int, int], Sequence[tuple[int, float]]]


def ranks_of(count: int, lines: Sequence[tuple[int, int]]) -> Ranks:
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
    return Ranks(parts, bends)


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
