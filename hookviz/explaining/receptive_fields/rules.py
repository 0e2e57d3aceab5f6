"""Receptive field rules by torch function: their table, and those of windows and elementwise calls.

A rule takes an operation and its first argument's extent, and returns the extent of each result; an
empty list where it does not know such an operation. The rules here are those of convolution,
pooling, padding and interpolation. A function without a rule is taken to make all of its results
from all of its arguments, so that a receptive field can come out too large and never too small.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hookviz.explaining.layers.layer_call import padding_around, pair
from hookviz.explaining.receptive_fields.attention_rules import (
    PRODUCTS,
    attention_rule,
    multi_head_rule,
    product_rule,
)
from hookviz.explaining.receptive_fields.extent import (
    AxisField,
    Edges,
    Extent,
    Operation,
    SlidingWindow,
    TooManyValuesError,
    adaptive_pool_window,
    broadcast_extent,
    conv_window,
    map_edges,
    merge_extents,
    reduce_extents,
)
from hookviz.explaining.receptive_fields.reshape_rules import (
    VIEWS,
    cat_rule,
    copy_rule,
    linear_rule,
    reduce_rule,
    reshape_rule,
    view_rule,
)
from hookviz.hooking.torch_functions import ACTIVATIONS, function_name

_AXES = (-2, -1)
_MAX_DENOMINATOR = 10_000  # of the fraction that an interpolation's scale factor is taken for

_NEAR = {"nearest": [0], "nearest-exact": [0], "bilinear": [0, 1], "bicubic": [-1, 0, 1, 2]}
"""Cells that interpolation reads, counted from the one before the sampled position."""


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
    for axis, scale in zip(_AXES, _per_axis(factors), strict=True):
        length, count = op.shapes[0][axis], op.results[0].shape[axis]
        factor = Fraction(length, count) if scale is None else 1 / _fraction(scale)
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


def _per_axis(factors: float | Sequence[float] | None) -> Sequence[float | None]:
    return factors if isinstance(factors, Sequence) else (factors, factors)


def _fraction(factor: float) -> Fraction:
    return Fraction(factor).limit_denominator(_MAX_DENOMINATOR)


def _unbounded_factor(length: int, count: int) -> Fraction:
    """Return the factor from cell to cell on an unbounded map for a resize of `length` to `count`.

    A map of 13 of which a layer of stride 2 made 7, or 6, is twice as large, but for its end.
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
