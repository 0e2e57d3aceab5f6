"""Receptive rules of what moves values, joins them or mixes a dimension, without a window.

From an operation and what its first argument sees to what each of its results sees; an empty list
where the operation is none that the rule knows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from hookviz.explaining import endless
from hookviz.explaining.endless import Line, window
from hookviz.explaining.reach import (
    Edges,
    Operation,
    Reach,
    each_edge,
    furthest,
    lengthened,
    nothing,
    shortened,
)
from hookviz.hooking import hooks
from hookviz.hooking.torch_functions import function_name

VIEWS = frozenset(
    (
        *("permute", "transpose", "movedim", "swapaxes", "t", "getitem", "narrow", "select"),
        *("chunk", "split", "tensor_split", "unbind", "unsqueeze", "squeeze", "expand"),
    )
)
"""Functions that only move the values of their first argument, without a copy."""

_ROW, _COLUMN = 3, 3 << 24  # strides by which the dimensions of a tensor are told from each other


def viewed(op: Operation, reach: Reach) -> list[Reach]:
    """Some of the values, or all in another order: the edges go the same way.

    Along which dimension rows and columns are then, and from where, shows in the strides of a
    tensor without data.
    """
    index = op.argument(1, "index")
    if any(isinstance(part, Tensor | list) for part in (index if isinstance(index, tuple) else ())):
        return copied(op, reach)
    strides = [0] * len(op.shapes[0])
    for line, stride in ((reach.rows, _ROW), (reach.columns, _COLUMN)):
        if line:
            strides[line.dim] = stride
    probe = torch.empty_strided(op.shapes[0], strides, dtype=torch.uint8, device="meta")
    return [
        Reach(edges, _followed(reach.rows, way, _ROW), _followed(reach.columns, way, _COLUMN))
        for edges, way in zip(_moved_edges(op, reach), _moved(op, probe), strict=True)
    ]


def copied(op: Operation, reach: Reach) -> list[Reach]:
    """Values in another order, in memory of their own; dimensions that it leaves as they are."""
    ndim, touched = len(op.shapes[0]), _touched(op)
    op.check(max(shape.numel() for shape in (op.shapes[0], *(made.shape for made in op.results))))
    return [
        Reach(edges, reach.rows, reach.columns).with_lines(
            lambda line: line if line.dim not in touched else None
        )
        if len(touched) < ndim and made.ndim == ndim
        else Reach(edges)
        for edges, made in zip(_moved_edges(op, reach), op.results, strict=True)
    ]


def reshaped(op: Operation, reach: Reach) -> list[Reach]:
    """Values in another shape, in the same order."""
    given, made = op.shapes[0], op.results[0].shape
    if not given.numel() or given.numel() != made.numel():
        return []
    groups = list(_groups(given, made))
    lines = reach.with_lines(lambda line: _regrouped(line, given, made, groups))
    return [replace(lines, edges=each_edge(reach.edges, lambda e: _reshaped(op, e, groups)))]


def reduced(op: Operation, reach: Reach) -> list[Reach]:
    """A reduction, such as a mean: everything along the dimensions that it is over."""
    given = op.argument(1, "dim", op.kwargs.get("axis"))
    if not isinstance(given, int | list | tuple) or given in ([], ()):
        return []
    dims = _from_the_end(given, len(op.shapes[0]))
    gone = dims if op.results[0].ndim < len(op.shapes[0]) else ()
    edges = each_edge(reach.edges, lambda edge: edge.amax(dims, keepdim=not gone))
    flat = replace(reach, edges=edges).with_lines(
        lambda line: (
            None
            if line.dim in dims
            else replace(line, dim=line.dim + sum(dim > line.dim for dim in gone))
        )
    )
    return [flat] * len(op.results)


def mixed(op: Operation, reach: Reach) -> list[Reach]:
    """A linear layer mixes the last dimension; a layer norm as many as it was made for."""
    normed = op.argument(1, "normalized_shape") if function_name(op.func) == "layer_norm" else (0,)
    dims = tuple(range(-len(normed), 0))
    edges = each_edge(reach.edges, lambda edge: edge.amax(dims, keepdim=True))
    return [replace(reach.with_lines(lambda x: None if x.dim in dims else x), edges=edges)]


def joined(op: Operation) -> Reach:
    """Tensors one behind the other; along the channels they count together."""
    ndim = op.results[0].ndim
    dim = int(op.argument(1, "dim", op.kwargs.get("axis", 0))) % ndim
    parts = [
        reach and reach.with_lines(lambda x: None if x.dim == dim - ndim else x)
        for reach in op.reaches
    ]
    seen = [part for part in parts if part]
    rows = endless.together(part.rows for part in seen)
    columns = endless.together(part.columns for part in seen)
    if dim < 2:
        flat = [each_edge(part.edges, lambda e: e.amax(dim, keepdim=True)) for part in seen]
        return Reach(furthest(flat, ndim), rows, columns)
    every = [
        lengthened(part.edges if part else nothing(ndim), shape, axes=(dim,))
        for part, shape in zip(parts, op.shapes, strict=True)
    ]
    edges = []
    for edge in range(4):
        sizes = np.broadcast_shapes(*(part[edge].narrow(dim, 0, 1).shape for part in every))
        length = op.results[0].shape[dim]
        op.check(length * int(np.prod(sizes)))
        edges.append(
            torch.cat(
                [part[edge].expand(*sizes[:dim], -1, *sizes[dim + 1 :]) for part in every], dim
            )
        )
    return Reach((edges[0], edges[1], edges[2], edges[3]), rows, columns)


def _moved(op: Operation, tensor: Tensor) -> list[Tensor]:
    """What the function makes of a tensor that stands for its first argument."""
    return [part for _, part in hooks.tensors_in(op.func(tensor, *op.args[1:], **op.kwargs))]


def _moved_edges(op: Operation, reach: Reach) -> Iterator[Edges]:
    """The edges of each result."""
    full = (_moved(op, edge.expand(op.shapes[0])) for edge in reach.edges)
    yield from map(shortened, zip(*full, strict=True))


def _followed(line: Line | None, way: Tensor, unit: int) -> Line | None:
    """The line along the dimension of `way` in whose stride its unit is; None where it is gone.

    A dimension that is new in front of that one has its stride too, where their lengths are 1.
    """
    start = int(way.storage_offset()) // unit % (_COLUMN // _ROW)
    for dim in range(-1, -way.ndim - 1, -1):
        steps, rest = divmod(way.stride(dim), unit)
        if line and not rest and 0 < steps < _COLUMN // _ROW:
            return replace(line, dim=dim).through(window(1, steps, -start))
    return None


def _touched(op: Operation) -> Sequence[int]:
    """The dimensions along which a function may move values, counted from the end."""
    name, ndim = function_name(op.func), len(op.shapes[0])
    every, numbers = tuple(range(-ndim, 0)), op.args[1:]
    if len(numbers) == 1 and isinstance(numbers[0], Sequence):
        numbers = tuple(numbers[0])
    dims: int | Sequence[int] = every
    if name == "channel_shuffle":
        dims = ()
    elif name == "index_select":
        dims = op.argument(1, "dim")
    elif name == "flip":
        dims = op.kwargs.get("dims", numbers)
    elif name == "repeat" and len(numbers) == ndim:
        dims = [dim for dim, count in zip(every, numbers, strict=True) if count != 1]
    elif name == "roll":
        dims = op.argument(2, "dims") or every
    elif name == "getitem" and len(op.args[1]) == 2 and op.args[1][0] == slice(None):
        dims = 1  # channels by an index
    return _from_the_end(dims, ndim)


def _from_the_end(dims: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    every = (dims,) if isinstance(dims, int) else dims
    return tuple(dim if dim < 0 else dim - ndim for dim in every)


_Group = tuple[slice, slice]
"""Neighbouring dimensions of one shape, and those that hold the same values in another one."""


def _groups(given: Sequence[int], made: Sequence[int]) -> Iterator[_Group]:
    """The dimensions of two shapes in as many groups as can be reshaped each on its own."""
    begin, start = 0, 0
    while begin < len(given) and start < len(made):
        end, stop = begin + 1, start + 1
        one, other = given[begin], made[start]
        while one != other:
            if one < other:
                one, end = one * given[end], end + 1
            else:
                other, stop = other * made[stop], stop + 1
        yield slice(begin, end), slice(start, stop)
        begin, start = end, stop
    if begin < len(given) or start < len(made):  # all of length 1
        yield slice(begin, len(given)), slice(start, len(made))


def _reshaped(op: Operation, edge: Tensor, groups: Sequence[_Group]) -> Tensor:
    """The edge in the result's shape: full only in those groups in which it isn't the same."""
    given, made = op.shapes[0], op.results[0].shape
    full, short = list(edge.shape), [1] * len(made)
    for of_given, of_made in groups:
        if any(length > 1 for length in edge.shape[of_given]):
            full[of_given] = given[of_given]
            short[of_made] = made[of_made]
    op.check(int(np.prod(full)))
    return edge.expand(full).reshape(short)


def _regrouped(
    line: Line, given: Sequence[int], made: Sequence[int], groups: Sequence[_Group]
) -> Line | None:
    """The line along the dimension that holds its cells alone, as they were; else None."""
    place = len(given) + line.dim
    for of_given, of_made in groups:
        if of_given.start <= place < of_given.stop:
            lengths = given[of_given], made[of_made]
            alone = given[place] > 1 and all(
                sorted(each)[-2:] in ([1, given[place]], [given[place]]) for each in lengths
            )
            if alone or len(lengths[0]) == len(lengths[1]) == 1:
                found = of_made.start + list(lengths[1]).index(given[place])
                return replace(line, dim=found - len(made))
    return None
