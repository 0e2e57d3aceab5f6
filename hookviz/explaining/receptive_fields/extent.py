"""Represent the input pixels that a tensor's values depend on, and follow them through attention.

An `Extent` has four edges for each value of a tensor. Beside them, an `AxisField` has the receptive
field along one axis of an unbounded image: its size, and the jump from cell to cell. A layer's
windows are the same all along a map, so one period of cells describes all: no large image has to go
through the network.

The output of attention for a query depends on the query, and on every key and value beside it:
those of its window, where windows lie one behind the other in the batch. A mask may shut some of
them out, so the field can be too large, never too small.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.hooking.torch_functions import function_name

_MAX_PERIOD = 4096  # cells; an axis with a longer period is taken to see the whole image


@dataclass(frozen=True, eq=False, slots=True)
class SlidingWindow:
    """Input cells that each output cell of a layer reads along one axis, of any number of cells.

    Output cell o reads ``cells[o % period] + step · (o // period)``.

    Attributes:
        cells: int64 ``(period, k)``; a cell that is named twice counts once.
        step: by how many input cells the windows of the next period are further on.
        valid: which of `cells` are read at all, bool ``(period, k)``.
    """

    cells: NDArray[np.int64]
    step: int
    valid: NDArray[np.bool_]

    @property
    def period(self) -> int:
        """Number of output cells before the same windows come again."""
        return len(self.cells)

    def first(self, count: int) -> Tensor:
        """Return the cells that each of the first `count` output cells reads, int64 ``(count, k)``.

        Cells that are not valid are −1, as are others in the padding before the first cell.
        """
        cells, valid = self.at(np.arange(count))
        return torch.from_numpy(np.where(valid, cells, -1))

    def at(self, indices: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the cells that output cells `indices` read, and which are valid: ``(n, k)``."""
        turns, residues = np.divmod(indices, self.period)
        return self.cells[residues] + self.step * turns[:, None], self.valid[residues]


def conv_window(kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1) -> SlidingWindow:
    """Make the window of a convolution or a pooling."""
    cells = np.arange(kernel)[None] * dilation - padding
    return SlidingWindow(cells, stride, np.ones(cells.shape, bool))


def adaptive_pool_window(length: int, count: int) -> SlidingWindow:
    """Make the window of adaptive pooling: cell o reads ⌊o·length/count⌋…⌈(o+1)·length/count⌉."""
    common = math.gcd(length, count)
    length, count = length // common, count // common
    cells = np.arange(count)[:, None]
    starts, ends = cells * length // count, -(-(cells + 1) * length // count)
    inside = starts + np.arange(int((ends - starts).max()))
    return SlidingWindow(inside, length, inside < ends)


@dataclass(frozen=True, eq=False, slots=True)
class AxisField:
    """Rows or columns of the image that the cells along one dimension of a tensor see, periodic.

    Cell i + period sees what cell i sees, `shift` pixels further on.

    Attributes:
        dim: that dimension, counted from the end: −2 for the rows of a map.
        ends: of one period of cells the first pixel, negated, and the one after the last, float64
            ``(2, period)``; so the larger number sees more, and −∞ sees nothing.
        shift: in pixels.
    """

    dim: int
    ends: NDArray[np.float64]
    shift: int

    @property
    def period(self) -> int:
        """Number of cells before they see the same again, further on."""
        return int(self.ends.shape[1])

    @property
    def size(self) -> int:
        """Size of the receptive field in pixels, of the cell that sees most."""
        return max(0, int(self.ends.sum(0).max()))

    @property
    def stride(self) -> float:
        """Pixels from one cell's field to the next one's, on average (the jump)."""
        return self.shift / self.period

    def at(self, indices: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return `ends` of the cells at `indices`, also beyond the map, ``(2, …)``."""
        turns, residues = np.divmod(indices, self.period)
        further = self.shift * turns
        ends: NDArray[np.float64] = self.ends[:, residues] + np.stack((-further, further))
        return ends

    def through(self, window: SlidingWindow) -> "AxisField | None":
        """Return the field behind a layer with this window; None where its period is too long."""
        turns = self.period // math.gcd(self.period, window.step)
        period = turns * window.period
        if period > _MAX_PERIOD:
            return None
        cells, valid = window.at(np.arange(period))
        ends = np.where(valid, self.at(cells), -np.inf).max(-1)
        return AxisField(self.dim, ends, self.shift * window.step * turns // self.period)


def pixel_axis_field(dim: int) -> AxisField:
    """Make the field of the image itself: every pixel sees itself."""
    return AxisField(dim, np.array([[0.0], [1.0]]), 1)


def merge_axis_fields(fields: Iterable[AxisField | None]) -> AxisField | None:
    """Return the field of an elementwise function of several tensors.

    None, which is the whole image, where one of them sees all of it, or where their jumps differ.
    """
    return reduce(_merge_two, fields)


def _merge_two(one: AxisField | None, other: AxisField | None) -> AxisField | None:
    if one is None or other is None or one.dim != other.dim:
        return None
    if one.shift * other.period != other.shift * one.period:
        return None
    period = math.lcm(one.period, other.period)
    if period > _MAX_PERIOD:
        return None
    indices = np.arange(period)
    ends = np.maximum(one.at(indices), other.at(indices))
    return AxisField(one.dim, ends, one.shift * period // one.period)


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


ALL, WINDOWS = "all", "windows"
"""What attention has mixed, as `Extent.mixed` has it: all there was, or the cells of windows."""

PRODUCTS = frozenset(("matmul", "bmm"))
_FUSED = "scaled_dot_product_attention"
_WHOLE = "multi_head_attention_forward"
_LEVELS = ("", WINDOWS, ALL)


def product_rule(op: Operation) -> list[Extent]:
    """Follow a product of matrices: each value sees a row of the one and a column of the other."""
    if len(op.extents) != 2 or min(map(len, op.shapes)) < 2:
        return []
    ndim, (left, right) = op.results[0].ndim, op.extents
    parts = [_along(left, -1, ndim), _along(right, -2, ndim)]
    _check(op, parts)
    merged = merge_extents(parts, ndim)
    if merged is None or (left is not None and right is not None):
        return [] if merged is None else [Extent(merged.edges)]
    shape = op.shapes[0] if right is None else op.shapes[1]
    wide = op.results[0].shape
    return [merged.map_axes(lambda axis: axis if shape[axis.dim] == wide[axis.dim] else None)]


def attention_rule(op: Operation) -> list[Extent]:
    """Follow `F.scaled_dot_product_attention`: (…, queries, channels) by (…, keys, channels)."""
    return _attended(op, tokens=-2)


def multi_head_rule(op: Operation) -> list[Extent]:
    """Follow `F.multi_head_attention_forward`, which has its tokens first, and then the batch."""
    return _attended(op, tokens=0)


def marked(op: Operation, results: Sequence[Extent | None]) -> list[Extent | None]:
    """Note in what an operation makes whether attention has mixed cells on the way to it."""
    seen = [extent for extent in op.extents if extent]
    name = function_name(op.func)
    is_product = name in PRODUCTS
    levels = [extent.mixed for extent in seen]
    if name in (_FUSED, _WHOLE) and len(op.extents) > 2:
        levels.append(_level(op.extents[2], tokens=0 if name == _WHOLE else -2))
    elif is_product and any(extent.is_weights for extent in seen):
        levels.append(_level(op.extents[-1], tokens=-2))
    mixed = max(levels, key=_LEVELS.index, default="")
    alone = len(seen) == 1 and seen[0].is_weights and not is_product
    is_weights = name == "softmax" or alone
    return [
        extent
        if extent is None or (extent.mixed, extent.is_weights) == (mixed, is_weights)
        else replace(extent, mixed=mixed, is_weights=is_weights)
        for extent in results
    ]


def _attended(op: Operation, tokens: int) -> list[Extent]:
    if len(op.args) < 3 or not all(isinstance(each, Tensor) for each in op.args[:3]):
        return []
    ndim = len(op.shapes[0])
    parts = [_along(op.extents[0], -1, ndim)]
    for extent in op.extents[1:3]:
        edges = extent and map_edges(extent.edges, lambda e: e.amax((tokens, -1), keepdim=True))
        parts.append(edges and Extent(edges))
    parts.append(reduce_extents(op.extents[3:], ndim))
    _check(op, parts)
    edges = merge_edges((part.edges for part in parts if part), ndim)
    return [Extent(edges)]


def _along(extent: Extent | None, dim: int, ndim: int) -> Extent | None:
    """Return the extent of a reduction over one dimension, in `ndim` dimensions."""
    if extent is None:
        return None

    def reduced(edge: Tensor) -> Tensor:
        edge = edge.amax(dim, keepdim=True)
        return edge.reshape((1,) * (ndim - edge.ndim) + tuple(edge.shape))

    kept = extent.map_axes(lambda axis: None if axis.dim == dim else axis)
    return replace(kept, edges=map_edges(extent.edges, reduced))


def _check(op: Operation, parts: Sequence[Extent | None]) -> None:
    """Refuse to make edges that would take too much memory."""
    edges: list[Edges] = [part.edges for part in parts if part]
    for number in range(4):
        op.check(math.prod(np.broadcast_shapes(*(tuple(each[number].shape) for each in edges))))


def _level(values: Extent | None, tokens: int) -> str:
    """Return whether all queries are answered with the same values, or with those of windows."""
    if values is None:
        return ""
    for edge in values.edges:
        each = edge.amax((tokens, -1))
        if bool((each != each.flatten()[0]).any()):
            return WINDOWS
    return ALL
