"""How far each value of a tensor sees on the network's input, and a torch call that changes it."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from hookviz.explaining import endless
from hookviz.explaining.endless import Line

MOST_VALUES = 12_500_000  # of one edge, so that the four of a tensor stay below 200 MB

Edges = tuple[Tensor, Tensor, Tensor, Tensor]
"""Up, left, down, right: how far each value of a tensor sees on the input as it is.

Each has as many dimensions as the tensor, and length 1 where it is the same all along one. Up and
left are the first row and column, negated; down and right are the row and column after the last:
so the larger number always sees more, a union is a maximum, and -∞ sees nothing.
"""


@dataclass(frozen=True, eq=False, slots=True)
class Reach:
    """How far each value of a tensor sees, over one input and over an image without an end.

    Attributes:
        edges: on the input.
        rows, columns: on an image that goes on for ever, over all channels; None where that would
            all be seen, or where it can't be told.
    """

    edges: Edges
    rows: Line | None = None
    columns: Line | None = None

    def with_lines(self, change: Callable[[Line], Line | None]) -> "Reach":
        """The same edges, with `change` made to each of the lines that has an end."""
        rows, columns = (line and change(line) for line in (self.rows, self.columns))
        return replace(self, rows=rows, columns=columns)


class TooManyValuesError(Exception):
    """An edge would have more values than it may."""


@dataclass(frozen=True, eq=False, slots=True)
class Operation:
    """One call of a torch function: its tensors by shape and reach, in order, and its results.

    Attributes:
        func: the torch function.
        args, kwargs: what it was called with.
        shapes: of every tensor among the arguments, in order.
        reaches: of the same tensors; None for one that nothing of the image went into.
        results: every tensor that it returned, in order.
        most: how many values an edge may have.
    """

    func: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    shapes: Sequence[torch.Size]
    reaches: Sequence[Reach | None]
    results: Sequence[Tensor]
    most: int = MOST_VALUES

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """An argument by its position or its name."""
        return self.args[position] if position < len(self.args) else self.kwargs.get(name, default)

    def check(self, values: int) -> None:
        """Refuse to make an edge of so many values.

        Raises:
            TooManyValuesError: they are more than `most`.
        """
        if values > self.most:
            raise TooManyValuesError


def of_pixels(image: Tensor) -> Reach:
    """The reach of an input, ``(1, C, H, W)``: every value sees its own pixel."""
    rows = torch.arange(image.shape[2], dtype=torch.float32, device="cpu").reshape(1, 1, -1, 1)
    columns = torch.arange(image.shape[3], dtype=torch.float32, device="cpu").reshape(1, 1, 1, -1)
    edges = -rows, -columns, rows + 1, columns + 1
    return Reach(edges, endless.of_pixels(-2), endless.of_pixels(-1))


def everything(image: Tensor, ndim: int) -> Reach:
    """The reach of a tensor of `ndim` dimensions whose values all see all of an input."""
    ends = (0.0, 0.0, float(image.shape[2]), float(image.shape[3]))
    up, left, down, right = (torch.full((1,) * ndim, end, device="cpu") for end in ends)
    return Reach((up, left, down, right))


def nothing(ndim: int) -> Edges:
    """The edges of a tensor of `ndim` dimensions that sees nothing."""
    return (torch.full((1,) * ndim, -math.inf, device="cpu"),) * 4


def furthest(every: Iterable[Edges], ndim: int) -> Edges:
    """The edges of a tensor of `ndim` dimensions that is made from others value by value."""
    edges: Sequence[Tensor] = nothing(ndim)
    for others in every:
        edges = [torch.maximum(ours, theirs) for ours, theirs in zip(edges, others, strict=True)]
    return edges[0], edges[1], edges[2], edges[3]


def union(reaches: Iterable[Reach | None], ndim: int) -> Reach | None:
    """What a tensor of `ndim` dimensions sees that is made from others value by value.

    Those that have lines are as long along these as the tensor is (see `broadcast`). None where
    nothing of the image went into any of them.
    """
    seen = [reach for reach in reaches if reach]
    if len(seen) == 1 and seen[0].edges[0].ndim == ndim:
        return seen[0]
    if not seen:
        return None
    edges = furthest((reach.edges for reach in seen), ndim)
    rows, columns = zip(*((reach.rows, reach.columns) for reach in seen), strict=True)
    return Reach(edges, endless.together(rows), endless.together(columns))


def broadcast(reach: Reach | None, shape: Sequence[int], onto: Sequence[int]) -> Reach | None:
    """The reach of a tensor of `shape` whose values are repeated to fill a tensor of shape `onto`.

    A row that is repeated is the same row everywhere, which no line says.
    """
    return reach and reach.with_lines(
        lambda line: line if shape[line.dim] == onto[line.dim] else None
    )


def total(reaches: Iterable[Reach | None], ndim: int) -> Reach | None:
    """What a tensor of `ndim` dimensions sees that depends on all of the others everywhere."""
    every = [each_edge(reach.edges, torch.amax) for reach in reaches if reach]
    return Reach(furthest(every, ndim)) if every else None


def each_edge(edges: Edges, change: Callable[[Tensor], Tensor]) -> Edges:
    """The edges with `change` made to each of the four."""
    up, left, down, right = map(change, edges)
    return up, left, down, right


def lengthened(edges: Edges, shape: Sequence[int], axes: Sequence[int]) -> Edges:
    """The same edges, each at its full length along `axes`."""

    def full(edge: Tensor) -> Tensor:
        sizes = list(edge.shape)
        for axis in axes:
            sizes[axis] = shape[axis]
        return edge.expand(sizes)

    return each_edge(edges, full)


def shortened(edges: Iterable[Tensor]) -> Edges:
    """The edges with length 1 along each dimension in which they are the same by construction."""
    up, left, down, right = edges

    def short(edge: Tensor) -> Tensor:
        for dim, stride in enumerate(edge.stride()):
            if stride == 0 and edge.shape[dim] > 1:
                edge = edge.narrow(dim, 0, 1)
        return edge

    return each_edge((up, left, down, right), short)
