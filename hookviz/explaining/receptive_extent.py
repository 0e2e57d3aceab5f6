"""Represent the pixels of the input that a tensor's values depend on, and a torch call on them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from hookviz.explaining.receptive_axis import AxisField, merge_axis_fields, pixel_axis_field

MAX_EDGE_VALUES = 12_500_000  # so that the four of a tensor stay below 200 MB

Edges = tuple[Tensor, Tensor, Tensor, Tensor]
"""Up, left, down, right: the bounding box of the pixels that each value of a tensor depends on.

Each has as many dimensions as the tensor, and length 1 where it is the same all along one. Up and
left are the first row and column, negated; down and right are the row and column after the last:
so the larger number always sees more, a union is a maximum, and -∞ sees nothing.
"""


@dataclass(frozen=True, eq=False, slots=True)
class Extent:
    """Receptive field of each value of a tensor, on this input and on an unbounded image.

    Attributes:
        edges: on this input.
        rows, columns: on an unbounded image, over all channels; None where all of it would be seen,
            or where it is unknown.
        mixed: what attention has mixed on the way: ``"all"`` that there was, the cells of
            ``"windows"``, or nothing, which is empty.
        is_weights: whether these are weights that a softmax has made.
    """

    edges: Edges
    rows: AxisField | None = None
    columns: AxisField | None = None
    mixed: str = ""
    is_weights: bool = False

    def map_axes(self, change: Callable[[AxisField], AxisField | None]) -> "Extent":
        """Return the same edges, with `change` applied to rows and columns where they are known."""
        rows, columns = (field and change(field) for field in (self.rows, self.columns))
        return replace(self, rows=rows, columns=columns)


class TooManyValuesError(Exception):
    """An edge would take too much memory; the rule is given up."""


@dataclass(frozen=True, eq=False, slots=True)
class Operation:
    """One call of a torch function: its tensors by shape and extent, in order, and its results.

    Attributes:
        func: the torch function.
        args, kwargs: what it was called with.
        shapes: of every tensor among the arguments, in order.
        extents: of the same tensors; None for one that nothing of the image went into.
        results: every tensor that it returned, in order.
        max_values: how many values an edge may have.
    """

    func: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    shapes: Sequence[torch.Size]
    extents: Sequence[Extent | None]
    results: Sequence[Tensor]
    max_values: int = MAX_EDGE_VALUES

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """Return an argument by its position or its name."""
        return self.args[position] if position < len(self.args) else self.kwargs.get(name, default)

    def check(self, values: int) -> None:
        """Refuse to make an edge of `values` values.

        Raises:
            TooManyValuesError: they are more than `max_values`.
        """
        if values > self.max_values:
            raise TooManyValuesError


def pixel_extent(image: Tensor) -> Extent:
    """Make the extent of an input, ``(1, C, H, W)``: every value sees its own pixel."""
    rows = torch.arange(image.shape[2], dtype=torch.float32, device="cpu").reshape(1, 1, -1, 1)
    columns = torch.arange(image.shape[3], dtype=torch.float32, device="cpu").reshape(1, 1, 1, -1)
    edges = -rows, -columns, rows + 1, columns + 1
    return Extent(edges, pixel_axis_field(-2), pixel_axis_field(-1))


def full_extent(image: Tensor, ndim: int) -> Extent:
    """Make the extent of a tensor of `ndim` dimensions whose values all see all of an input."""
    ends = (0.0, 0.0, float(image.shape[2]), float(image.shape[3]))
    up, left, down, right = (torch.full((1,) * ndim, end, device="cpu") for end in ends)
    return Extent((up, left, down, right))


def no_edges(ndim: int) -> Edges:
    """Make the edges of a tensor of `ndim` dimensions that sees nothing."""
    return (torch.full((1,) * ndim, -math.inf, device="cpu"),) * 4


def merge_edges(operands: Iterable[Edges], ndim: int) -> Edges:
    """Return the edges of an elementwise function of several tensors, in `ndim` dimensions."""
    edges: Sequence[Tensor] = no_edges(ndim)
    for others in operands:
        edges = [torch.maximum(ours, theirs) for ours, theirs in zip(edges, others, strict=True)]
    return edges[0], edges[1], edges[2], edges[3]


def merge_extents(extents: Iterable[Extent | None], ndim: int) -> Extent | None:
    """Return the extent of an elementwise function of several tensors, in `ndim` dimensions.

    Operands with known rows or columns are as long along these as the result (see
    `broadcast_extent`). None where no operand depends on the image.
    """
    seen = [extent for extent in extents if extent]
    if len(seen) == 1 and seen[0].edges[0].ndim == ndim:
        return seen[0]
    if not seen:
        return None
    edges = merge_edges((extent.edges for extent in seen), ndim)
    rows, columns = zip(*((extent.rows, extent.columns) for extent in seen), strict=True)
    return Extent(edges, merge_axis_fields(rows), merge_axis_fields(columns))


def broadcast_extent(
    extent: Extent | None, shape: Sequence[int], onto: Sequence[int]
) -> Extent | None:
    """Return the extent of a tensor of `shape` whose values are broadcast to the shape `onto`.

    A row that is repeated sees the same everywhere, which no `AxisField` can say.
    """
    return extent and extent.map_axes(
        lambda field: field if shape[field.dim] == onto[field.dim] else None
    )


def reduce_extents(extents: Iterable[Extent | None], ndim: int) -> Extent | None:
    """Return the extent of a tensor that depends on all values of the others everywhere."""
    edges = [map_edges(extent.edges, torch.amax) for extent in extents if extent]
    return Extent(merge_edges(edges, ndim)) if edges else None


def map_edges(edges: Edges, change: Callable[[Tensor], Tensor]) -> Edges:
    """Apply `change` to each of the four edges."""
    up, left, down, right = map(change, edges)
    return up, left, down, right


def expand_edges(edges: Edges, shape: Sequence[int], axes: Sequence[int]) -> Edges:
    """Expand the edges to their full length along `axes`."""

    def full(edge: Tensor) -> Tensor:
        sizes = list(edge.shape)
        for axis in axes:
            sizes[axis] = shape[axis]
        return edge.expand(sizes)

    return map_edges(edges, full)


def collapse_edges(edges: Iterable[Tensor]) -> Edges:
    """Collapse the edges to length 1 along each dimension that is expanded (of stride 0)."""
    up, left, down, right = edges

    def short(edge: Tensor) -> Tensor:
        for dim, stride in enumerate(edge.stride()):
            if stride == 0 and edge.shape[dim] > 1:
                edge = edge.narrow(dim, 0, 1)
        return edge

    return map_edges((up, left, down, right), short)
