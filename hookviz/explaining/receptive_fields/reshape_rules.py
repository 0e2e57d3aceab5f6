"""Compute receptive fields through views, copies, reshapes, reductions, ``cat`` and ``linear``.

Each rule takes an operation and its first argument's extent, and returns the extent of each result;
an empty list where it does not know such an operation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from hookviz.explaining.receptive_fields.extent import (
    AxisField,
    Edges,
    Extent,
    Operation,
    collapse_edges,
    conv_window,
    expand_edges,
    map_edges,
    merge_axis_fields,
    merge_edges,
    no_edges,
)
from hookviz.hooking import hooks
from hookviz.hooking.torch_functions import function_name

VIEWS = frozenset(
    (
        *("permute", "transpose", "movedim", "swapaxes", "t", "getitem", "narrow", "select"),
        *("chunk", "split", "tensor_split", "unbind", "unsqueeze", "squeeze", "expand"),
        "get",  # of an attribute such as `mT`
    )
)
"""Functions that only rearrange the values of their first argument, without a copy."""

_ROW, _COLUMN = 3, 3 << 24  # strides that mark the dimensions of rows and columns


def view_rule(op: Operation, extent: Extent) -> list[Extent]:
    """Follow a view, which selects or reorders values: apply it to the edges too.

    The strides of a tensor without data show along which dimension rows and columns lie then, and
    from which index.
    """
    index = op.argument(1, "index")
    if any(isinstance(part, Tensor | list) for part in (index if isinstance(index, tuple) else ())):
        return copy_rule(op, extent)
    strides = [0] * len(op.shapes[0])
    for field, stride in ((extent.rows, _ROW), (extent.columns, _COLUMN)):
        if field:
            strides[field.dim] = stride
    probe = torch.empty_strided(op.shapes[0], strides, dtype=torch.uint8, device="meta")
    return [
        Extent(
            edges,
            _locate_axis(extent.rows, view, _ROW),
            _locate_axis(extent.columns, view, _COLUMN),
        )
        for edges, view in zip(
            _edges_of_results(op, extent), _call_with_first_argument(op, probe), strict=True
        )
    ]


def copy_rule(op: Operation, extent: Extent) -> list[Extent]:
    """Follow a copy in another order, such as ``flip``; dimensions that it does not touch stay."""
    ndim, touched = len(op.shapes[0]), _touched_dims(op)
    op.check(
        max(shape.numel() for shape in (op.shapes[0], *(result.shape for result in op.results)))
    )
    return [
        Extent(edges, extent.rows, extent.columns).map_axes(
            lambda field: field if field.dim not in touched else None
        )
        if len(touched) < ndim and result.ndim == ndim
        else Extent(edges)
        for edges, result in zip(_edges_of_results(op, extent), op.results, strict=True)
    ]


def reshape_rule(op: Operation, extent: Extent) -> list[Extent]:
    """Follow a reshape: the same values in the same order."""
    old, new = op.shapes[0], op.results[0].shape
    if not old.numel() or old.numel() != new.numel():
        return []
    groups = list(_group_dims(old, new))
    result = extent.map_axes(lambda field: _reshape_axis(field, old, new, groups))
    return [replace(result, edges=map_edges(extent.edges, lambda e: _reshape_edge(op, e, groups)))]


def reduce_rule(op: Operation, extent: Extent) -> list[Extent]:
    """Follow a reduction, such as a mean: all along the dimensions that it reduces."""
    dim = op.argument(1, "dim", op.kwargs.get("axis"))
    if not isinstance(dim, int | list | tuple) or dim in ([], ()):
        return []
    dims = _negative_dims(dim, len(op.shapes[0]))
    gone = dims if op.results[0].ndim < len(op.shapes[0]) else ()
    edges = map_edges(extent.edges, lambda edge: edge.amax(dims, keepdim=not gone))
    flat = replace(extent, edges=edges).map_axes(
        lambda field: (
            None
            if field.dim in dims
            else replace(field, dim=field.dim + sum(dim > field.dim for dim in gone))
        )
    )
    return [flat] * len(op.results)


def linear_rule(op: Operation, extent: Extent) -> list[Extent]:
    """Follow ``linear``, which mixes the last dimension, or ``layer_norm``, which mixes its own."""
    normed = op.argument(1, "normalized_shape") if function_name(op.func) == "layer_norm" else (0,)
    dims = tuple(range(-len(normed), 0))
    edges = map_edges(extent.edges, lambda edge: edge.amax(dims, keepdim=True))
    return [
        replace(extent.map_axes(lambda field: None if field.dim in dims else field), edges=edges)
    ]


def cat_rule(op: Operation) -> Extent:
    """Follow ``cat``: tensors one behind the other; along the channels their extents are merged."""
    ndim = op.results[0].ndim
    dim = int(op.argument(1, "dim", op.kwargs.get("axis", 0))) % ndim
    parts = [
        extent and extent.map_axes(lambda field: None if field.dim == dim - ndim else field)
        for extent in op.extents
    ]
    seen = [part for part in parts if part]
    rows = merge_axis_fields(part.rows for part in seen)
    columns = merge_axis_fields(part.columns for part in seen)
    if dim < 2 and (dim, ndim) != (1, 3):  # where tokens may lie, as a class token before patches
        flat = [map_edges(part.edges, lambda e: e.amax(dim, keepdim=True)) for part in seen]
        return Extent(merge_edges(flat, ndim), rows, columns)
    full = [
        expand_edges(part.edges if part else no_edges(ndim), shape, axes=(dim,))
        for part, shape in zip(parts, op.shapes, strict=True)
    ]
    edges = []
    for edge in range(4):
        sizes = np.broadcast_shapes(*(part[edge].narrow(dim, 0, 1).shape for part in full))
        length = op.results[0].shape[dim]
        op.check(length * int(np.prod(sizes)))
        edges.append(
            torch.cat(
                [part[edge].expand(*sizes[:dim], -1, *sizes[dim + 1 :]) for part in full], dim
            )
        )
    return Extent((edges[0], edges[1], edges[2], edges[3]), rows, columns)


def _call_with_first_argument(op: Operation, tensor: Tensor) -> list[Tensor]:
    """Call the function on a tensor in place of its first argument."""
    return [part for _, part in hooks.tensors_in(op.func(tensor, *op.args[1:], **op.kwargs))]


def _edges_of_results(op: Operation, extent: Extent) -> Iterator[Edges]:
    """Apply the function to the edges, and yield those of each result."""
    full = (_call_with_first_argument(op, edge.expand(op.shapes[0])) for edge in extent.edges)
    yield from map(collapse_edges, zip(*full, strict=True))


def _locate_axis(field: AxisField | None, view: Tensor, unit: int) -> AxisField | None:
    """Find the dimension of the view whose stride carries the mark `unit`; None where it is gone.

    A new dimension in front of that one has its stride too, where their lengths are 1.
    """
    start = int(view.storage_offset()) // unit % (_COLUMN // _ROW)
    for dim in range(-1, -view.ndim - 1, -1):
        steps, rest = divmod(view.stride(dim), unit)
        if field and not rest and 0 < steps < _COLUMN // _ROW:
            return replace(field, dim=dim).through(conv_window(1, steps, -start))
    return None


def _touched_dims(op: Operation) -> Sequence[int]:
    """Return the dimensions along which a function may move values, counted from the end."""
    name, ndim = function_name(op.func), len(op.shapes[0])
    all_dims, numbers = tuple(range(-ndim, 0)), op.args[1:]
    if len(numbers) == 1 and isinstance(numbers[0], Sequence):
        numbers = tuple(numbers[0])
    dims: int | Sequence[int] = all_dims
    if name == "channel_shuffle":
        dims = ()
    elif name == "index_select":
        dims = op.argument(1, "dim")
    elif name == "flip":
        dims = op.kwargs.get("dims", numbers)
    elif name == "repeat" and len(numbers) == ndim:
        dims = [dim for dim, count in zip(all_dims, numbers, strict=True) if count != 1]
    elif name == "roll":
        dims = op.argument(2, "dims") or all_dims
    elif name == "getitem" and len(op.args[1]) == 2 and op.args[1][0] == slice(None):
        dims = 1  # channels by an index
    return _negative_dims(dims, ndim)


def _negative_dims(dims: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    dims = (dims,) if isinstance(dims, int) else dims
    return tuple(dim if dim < 0 else dim - ndim for dim in dims)


_DimGroup = tuple[slice, slice]
"""Neighbouring dimensions of one shape, and those that hold the same values in another one."""


def _group_dims(old: Sequence[int], new: Sequence[int]) -> Iterator[_DimGroup]:
    """Split the dimensions of two shapes into the smallest groups that reshape independently."""
    begin, start = 0, 0
    while begin < len(old) and start < len(new):
        end, stop = begin + 1, start + 1
        one, other = old[begin], new[start]
        while one != other:
            if one < other:
                one, end = one * old[end], end + 1
            else:
                other, stop = other * new[stop], stop + 1
        yield slice(begin, end), slice(start, stop)
        begin, start = end, stop
    if begin < len(old) or start < len(new):  # all of length 1
        yield slice(begin, len(old)), slice(start, len(new))


def _reshape_edge(op: Operation, edge: Tensor, groups: Sequence[_DimGroup]) -> Tensor:
    """Reshape an edge, expanded only in those groups of dimensions in which it varies."""
    old, new = op.shapes[0], op.results[0].shape
    full, short = list(edge.shape), [1] * len(new)
    for old_dims, new_dims in groups:
        if any(length > 1 for length in edge.shape[old_dims]):
            full[old_dims] = old[old_dims]
            short[new_dims] = new[new_dims]
    op.check(int(np.prod(full)))
    return edge.expand(full).reshape(short)


def _reshape_axis(
    field: AxisField, old: Sequence[int], new: Sequence[int], groups: Sequence[_DimGroup]
) -> AxisField | None:
    """Return the field along the dimension that holds the same cells and no others; else None."""
    index = len(old) + field.dim
    for old_dims, new_dims in groups:
        if old_dims.start <= index < old_dims.stop:
            lengths = old[old_dims], new[new_dims]
            is_alone = old[index] > 1 and all(
                sorted(shape)[-2:] in ([1, old[index]], [old[index]]) for shape in lengths
            )
            if is_alone or len(lengths[0]) == len(lengths[1]) == 1:
                new_index = new_dims.start + list(lengths[1]).index(old[index])
                return replace(field, dim=new_index - len(new))
    return None
