"""Receptive field rules by torch function: windows, elementwise calls, views, copies, reductions.

A rule takes an operation and its first argument's extent, and returns the extent of each result; an
empty list where it does not know such an operation. A function without a rule is taken to make all
of its results from all of its arguments, so that a receptive field can come out too large and never
too small. `hookviz.explaining.receptive_fields.extent` has the rules of attention.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hookviz.explaining.layers.layer_call import padding_around, pair
from hookviz.explaining.receptive_fields.extent import (
    PRODUCTS,
    AxisField,
    Edges,
    Extent,
    Operation,
    SlidingWindow,
    TooManyValuesError,
    adaptive_pool_window,
    attention_rule,
    broadcast_extent,
    collapse_edges,
    conv_window,
    expand_edges,
    map_edges,
    merge_axis_fields,
    merge_edges,
    merge_extents,
    multi_head_rule,
    no_edges,
    product_rule,
    reduce_extents,
)
from hookviz.hooking import hooks
from hookviz.hooking.torch_functions import ACTIVATIONS, function_name

_AXES = (-2, -1)
_MAX_DENOMINATOR = 10_000  # of the fraction that an interpolation's scale factor is taken for

_NEAR = {"nearest": [0], "nearest-exact": [0], "bilinear": [0, 1], "bicubic": [-1, 0, 1, 2]}
"""Cells that interpolation reads, counted from the one before the sampled position."""

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


def _conv2d_rule(op: Operation, extent: Extent) -> list[Extent]:
    """Follow ``conv2d``: all channels, and the cells under the kernel."""
    kernel = op.shapes[1][2:]
    if len(kernel) != 2:
        return []
    stride, dilation = pair(op.argument(3, "stride", 1)), pair(op.argument(5, "dilation", 1))
    left, _, top, _ = padding_around(op.argument(4, "padding", 0), kernel, dilation)
    windows = list(map(conv_window, kernel, stride, (top, left), dilation))
    return [_slide(op, _all_channels(extent), windows)]


def _conv_transpose2d_rule(op: Operation, extent: Extent) -> list[Extent]:
    """Follow ``conv_transpose2d``: cell o gets value i where o = i·stride − pad + k·dilation."""
    kernel = op.shapes[1][2:]
    stride, pads = pair(op.argument(3, "stride", 1)), pair(op.argument(4, "padding", 0))
    dilation = pair(op.argument(7, "dilation", 1))
    windows = []
    for axis in (0, 1):
        positions = np.arange(stride[axis])[:, None] + pads[axis]
        positions = positions - np.arange(kernel[axis]) * dilation[axis]
        valid = positions % stride[axis] == 0
        windows.append(SlidingWindow(positions // stride[axis], 1, valid))
    return [_slide(op, _all_channels(extent), windows)]


def _pool2d_rule(op: Operation, extent: Extent) -> list[Extent]:
    """Follow max, average or lp pooling: the cells of each window, in the same channel."""
    lp = function_name(op.func) == "lp_pool2d"
    kernel = pair(op.argument(2 if lp else 1, "kernel_size"))
    stride = pair(op.argument(3 if lp else 2, "stride") or kernel)
    pads = (0, 0) if lp else pair(op.argument(3, "padding", 0))
    dilates = function_name(op.func) == "max_pool2d"
    dilation = pair(op.argument(4, "dilation", 1) if dilates else 1)
    return [_slide(op, extent, list(map(conv_window, kernel, stride, pads, dilation)))] * len(
        op.results
    )


def _adaptive_pool2d_rule(op: Operation, extent: Extent) -> list[Extent]:
    """Follow adaptive pooling, with its windows on this input; a single cell sees all."""
    in_shape, out_shape = op.shapes[0], op.results[0].shape
    result = _slide(
        op, extent, [adaptive_pool_window(in_shape[axis], out_shape[axis]) for axis in _AXES]
    )
    result = result.map_axes(lambda field: field if out_shape[field.dim] > 1 else None)
    return [result] * len(op.results)


def _pixel_unshuffle_rule(op: Operation, extent: Extent) -> list[Extent]:
    """Follow ``pixel_unshuffle``: the cells of each square become channels of one cell."""
    factor = int(op.argument(1, "downscale_factor"))
    return [_slide(op, _all_channels(extent), [conv_window(factor, factor)] * 2)]


def _pixel_shuffle_rule(op: Operation, extent: Extent) -> list[Extent]:
    """Follow ``pixel_shuffle``: the channels of one cell become the cells of a square."""
    factor = int(op.argument(1, "upscale_factor"))
    return [
        _slide(
            op, _all_channels(extent), [_sampling_window(Fraction(1, factor), Fraction(0), [0])] * 2
        )
    ]


def _pad_rule(op: Operation, extent: Extent) -> list[Extent]:
    """Follow ``F.pad``: zeros see nothing, mirrored cells what they mirror.

    An unbounded map has no edge to pad, so its rows and columns only shift.
    """
    pads, mode, shape = op.argument(1, "pad"), op.argument(2, "mode", "constant"), op.shapes[0]
    cells, windows = {}, {}
    for index, (before, after) in enumerate(zip(pads[::2], pads[1::2], strict=True)):
        dim = -1 - index
        windows[dim] = conv_window(1, padding=before)
        sources = torch.arange(-before, shape[dim] + after)
        if mode != "constant":
            ramp = torch.arange(shape[dim], dtype=torch.float64).reshape(1, 1, -1)
            sources = F.pad(ramp, (before, after), mode).flatten().long()
        cells[dim] = sources[:, None]
    result = extent.map_axes(lambda field: _field_behind(field, windows))
    return [replace(result, edges=_max_over_windows(op, extent.edges, cells))]


def _interpolate_rule(op: Operation, extent: Extent) -> list[Extent]:
    """Follow ``interpolate``: the nearest cell, two neighbours, or four where it is cubic.

    Cell o lies at ``factor · o + offset`` of the map that is resized.
    """
    mode, aligned = op.argument(3, "mode", "nearest"), op.argument(4, "align_corners")
    factors = None if op.argument(5, "recompute_scale_factor") else op.argument(2, "scale_factor")
    if mode not in _NEAR or len(op.shapes[0]) != 4 or op.kwargs.get("antialias"):
        return []
    near, cells, windows = _NEAR[mode], {}, {}
    scales = factors if isinstance(factors, Sequence) else (factors, factors)
    for axis, scale in zip(_AXES, scales, strict=True):
        length, count = op.shapes[0][axis], op.results[0].shape[axis]
        factor = (
            Fraction(length, count)
            if scale is None
            else 1 / Fraction(scale).limit_denominator(_MAX_DENOMINATOR)
        )
        unbounded = _unbounded_factor(length, count) if scale is None else factor
        if aligned:
            # A little less than the unbounded factor, and more so with every cell.
            offset, drift = Fraction(0), Fraction(-1, _MAX_DENOMINATOR)
            factor = Fraction(length - 1, max(1, count - 1))
        else:
            offset, drift = _offset(mode, factor), _offset(mode, unbounded)
        base = (
            _sampling_window(factor, offset, [0])
            .first(count)
            .clamp(min=-1 if mode == "bicubic" else 0)
        )
        cells[axis] = (base + torch.tensor(near)).clamp(0, length - 1)
        windows[axis] = _sampling_window(unbounded, drift, near)
    result = extent.map_axes(lambda field: _field_behind(field, windows))
    return [replace(result, edges=_max_over_windows(op, extent.edges, cells))]


def _offset(mode: str, factor: Fraction) -> Fraction:
    return {"nearest": Fraction(0), "nearest-exact": factor / 2}.get(mode, (factor - 1) / 2)


def _unbounded_factor(length: int, count: int) -> Fraction:
    """Return the factor from cell to cell on an unbounded map for a resize of `length` to `count`.

    A layer of stride 2 makes 7, or 6, cells of 13: a map twice as large, but for its end.
    """
    less, more = sorted((length, count))
    for power in range(more.bit_length()):
        halved = more / 2**power
        if less in (math.floor(halved), math.ceil(halved)):
            return Fraction(2**power if length == more else Fraction(1, 2**power))
    return Fraction(length, count)


def _sampling_window(factor: Fraction, offset: Fraction, near: Sequence[int]) -> SlidingWindow:
    """Make the window whose cell o reads ⌊factor · o + offset⌋ + `near`."""
    bases = [math.floor(factor * cell + offset) for cell in range(factor.denominator)]
    cells = np.array(bases)[:, None] + np.array(near)
    return SlidingWindow(cells, factor.numerator, np.ones(cells.shape, bool))


def _slide(op: Operation, extent: Extent, windows: Sequence[SlidingWindow]) -> Extent:
    """Slide windows over rows and columns: a result sees all that the cells in its window see."""
    along = dict(zip(_AXES, windows, strict=True))
    cells = {axis: window.first(op.results[0].shape[axis]) for axis, window in along.items()}
    result = extent.map_axes(lambda field: _field_behind(field, along))
    return replace(result, edges=_max_over_windows(op, extent.edges, cells))


def _field_behind(field: AxisField, windows: Mapping[int, SlidingWindow]) -> AxisField | None:
    return field.through(windows[field.dim]) if field.dim in windows else field


def _max_over_windows(op: Operation, edges: Edges, cells: Mapping[int, Tensor]) -> Edges:
    """Take the maximum of each edge over `cells`, ``(count, k)``, along each of the dimensions."""
    for dim, indices in cells.items():
        edges = map_edges(edges, partial(_max_over_cells, op, dim, indices))
    return edges


def _max_over_cells(op: Operation, dim: int, cells: Tensor, edge: Tensor) -> Tensor:
    """Take the maximum over `cells` along one dimension; cells beyond it see nothing."""
    length = op.shapes[0][dim]
    if edge.shape[dim] < length:
        return edge  # the same all along it
    op.check(edge.numel() // length * cells.numel())
    blank = edge.new_full((1,), -math.inf).expand(*edge.narrow(dim, 0, 1).shape)
    inside = torch.where((cells >= 0) & (cells < length), cells, length)
    taken = torch.cat([edge, blank], dim).index_select(dim, inside.flatten())
    if inside.shape[1] == 1:
        return taken
    spread: Tensor = taken.unflatten(dim, tuple(cells.shape))  # type: ignore[no-untyped-call]
    return spread.amax(dim)


def _all_channels(extent: Extent) -> Extent:
    edges = map_edges(extent.edges, lambda edge: edge.amax(-3, keepdim=True))
    return replace(extent.map_axes(lambda field: field if field.dim != -3 else None), edges=edges)


_ARITHMETIC = frozenset(
    f"{prefix}{kind}"
    for prefix in ("", "i", "r")
    for kind in ("add", "sub", "mul", "div", "truediv", "pow", "floordiv")
)
_POINTWISE = (
    ACTIVATIONS
    | _ARITHMETIC
    | frozenset(
        (
            *("dropout", "dropout1d", "dropout2d", "feature_dropout", "alpha_dropout", "clone"),
            *("detach", "contiguous", "to", "float", "half", "double", "bfloat16", "type_as"),
            *("abs", "neg", "exp", "log", "log1p", "sqrt", "rsqrt", "square", "erf", "sin", "cos"),
            *("maximum", "minimum", "where", "lerp", "addcmul", "addcdiv", "clamp_min", "copy"),
            *("clamp_max", "reciprocal", "sign", "floor", "ceil", "round", "nan_to_num"),
        )
    )
)
"""Elementwise functions: each value is made from those at the same index of the arguments."""

_RESHAPES = frozenset(("view", "reshape", "flatten", "unflatten", "view_as", "reshape_as"))
_COPIES = frozenset(("roll", "flip", "repeat", "tile", "rot90", "index_select", "channel_shuffle"))
"""Functions that move the values of their first argument into memory of their own."""

_FRESH = frozenset(
    (
        *("new_ones", "new_zeros", "new_full", "new_empty", "new_tensor", "zeros_like"),
        *("ones_like", "full_like", "empty_like", "rand_like", "randn_like"),
    )
)
"""Functions that take no more than shape and type from their first argument."""

_POOLS = frozenset(("max_pool2d", "avg_pool2d", "lp_pool2d"))
_REDUCES = frozenset(("mean", "sum", "amax", "amin", "var", "std", "logsumexp", "softmax"))

_RULES: dict[str, Callable[[Operation, Extent], list[Extent]]] = {
    "conv2d": _conv2d_rule,
    "conv_transpose2d": _conv_transpose2d_rule,
    "interpolate": _interpolate_rule,
    "pad": _pad_rule,
    "pixel_shuffle": _pixel_shuffle_rule,
    "pixel_unshuffle": _pixel_unshuffle_rule,
    "linear": linear_rule,
    "layer_norm": linear_rule,
    **dict.fromkeys(_POOLS, _pool2d_rule),
    **dict.fromkeys(("adaptive_avg_pool2d", "adaptive_max_pool2d"), _adaptive_pool2d_rule),
    **dict.fromkeys(_RESHAPES, reshape_rule),
    **dict.fromkeys(VIEWS, view_rule),
    **dict.fromkeys(_COPIES, copy_rule),
    **dict.fromkeys(_REDUCES, reduce_rule),
}
_OF_SEVERAL: dict[str, Callable[[Operation], list[Extent]]] = {
    **dict.fromkeys(("cat", "concat"), lambda op: [cat_rule(op)]),
    **dict.fromkeys(PRODUCTS, product_rule),
    "scaled_dot_product_attention": attention_rule,
    "multi_head_attention_forward": multi_head_rule,
}
"""Rules that go by all arguments, not by the first alone."""


def extents_of_results(op: Operation) -> list[Extent | None]:
    """Return the extents of an operation's results; None for one that the image is not in."""
    name = function_name(op.func)
    if is_elementwise(op):
        return [_elementwise(op, tensor.shape) for tensor in op.results]
    if name in _FRESH:
        return [reduce_extents(op.extents[1:], tensor.ndim) for tensor in op.results]
    extents: list[Extent] = []
    with suppress(TooManyValuesError):
        if name in _OF_SEVERAL:
            extents = _OF_SEVERAL[name](op)
        elif op.extents[0] is not None and name in _RULES:
            extents = _RULES[name](op, op.extents[0])
    rest = [] if name in _OF_SEVERAL else op.extents[1:]
    return [
        merge_extents([extents[position], reduce_extents(rest, tensor.ndim)], tensor.ndim)
        if position < len(extents)
        else reduce_extents(op.extents, tensor.ndim)
        for position, tensor in enumerate(op.results)
    ]


def is_elementwise(op: Operation) -> bool:
    """Return whether each value of the results depends on the same index of the arguments alone."""
    name = function_name(op.func)
    return name in _POINTWISE or (name == "batch_norm" and op.argument(5, "training") is False)


def _elementwise(op: Operation, shape: torch.Size) -> Extent | None:
    if any(len(own) > len(shape) for own in op.shapes):
        # as `where` of a condition alone, which counts cells
        return reduce_extents(op.extents, len(shape))
    operands = zip(op.extents, op.shapes, strict=True)
    return merge_extents(
        (broadcast_extent(extent, own, shape) for extent, own in operands), len(shape)
    )
