"""How far each value of a tensor sees on the network's input, and a torch call that changes it."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Reach = tuple[Tensor, Tensor, Tensor, Tensor]
"""Up, left, down, right: how far each value of a tensor sees.

Each has as many dimensions as the tensor, and length 1 where it is the same all along one. Up and
left are the first row and column, negated; down and right are the row and column after the last:
so the larger number always sees more, a union is a maximum, and -∞ sees nothing.
"""


@dataclass(frozen=True, eq=False, slots=True)
class Operation:
    """One call of a torch function: its tensors by shape and reach, in order, and its results.

    Attributes:
        func: the torch function.
        args, kwargs: what it was called with.
        shapes: of every tensor among the arguments, in order.
        reaches: of the same tensors; None for one that nothing of the image went into.
        results: every tensor that it returned, in order.
    """

    func: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    shapes: Sequence[torch.Size]
    reaches: Sequence[Reach | None]
    results: Sequence[Tensor]

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """An argument by its position or its name."""
        return self.args[position] if position < len(self.args) else self.kwargs.get(name, default)


def of_pixels(image: Tensor) -> Reach:
    """The reach of an input, ``(1, C, H, W)``: every value sees its own pixel."""
    rows = torch.arange(image.shape[2], dtype=torch.float32).reshape(1, 1, -1, 1)
    columns = torch.arange(image.shape[3], dtype=torch.float32).reshape(1, 1, 1, -1)
    return -rows, -columns, rows + 1, columns + 1


def union(reaches: Iterable[Reach | None], ndim: int) -> Reach:
    """What a tensor of `ndim` dimensions sees that is made from others value by value."""
    edges = [torch.full((1,) * ndim, -math.inf)] * 4
    for reach in filter(None, reaches):
        edges = [torch.maximum(ours, theirs) for ours, theirs in zip(edges, reach, strict=True)]
    return edges[0], edges[1], edges[2], edges[3]


def total(reaches: Iterable[Reach | None], ndim: int) -> Reach:
    """What a tensor of `ndim` dimensions sees that depends on all of the others everywhere."""
    return union([each_edge(reach, torch.amax) for reach in reaches if reach], ndim)


def each_edge(reach: Reach, change: Callable[[Tensor], Tensor]) -> Reach:
    """The reach with `change` made to each of its four edges."""
    up, left, down, right = map(change, reach)
    return up, left, down, right


def lengthened(reach: Reach, shape: Sequence[int], axes: Sequence[int]) -> Reach:
    """The same reach with each edge at its full length along `axes`."""

    def full(edge: Tensor) -> Tensor:
        sizes = list(edge.shape)
        for axis in axes:
            sizes[axis] = shape[axis]
        return edge.expand(sizes)

    return each_edge(reach, full)


def shortened(*edges: Tensor) -> Reach:
    """The edges with length 1 along each dimension in which they are the same by construction."""
    up, left, down, right = edges

    def short(edge: Tensor) -> Tensor:
        for dim, stride in enumerate(edge.stride()):
            if stride == 0 and edge.shape[dim] > 1:
                edge = edge.narrow(dim, 0, 1)
        return edge

    return each_edge((up, left, down, right), short)
