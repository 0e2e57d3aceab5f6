"""What torch's functions make of how far tensors see: one rule for each kind of function.

A function that has no rule is taken to make all of its results from all of its arguments, so that
a rectangle can come out too large and never too small.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hookviz.hooking import hooks
from hookviz.hooking.torch_functions import ACTIVATIONS, function_name

Reach = tuple[Tensor, Tensor, Tensor, Tensor]
"""Up, left, down, right: how far each value of a tensor sees.

Each has as many dimensions as the tensor, and length 1 where it is the same all along one. Up and
left are the first row and column, negated; down and right are the row and column after the last:
so the larger number always sees more, a union is a maximum, and -∞ sees nothing.
"""

_ARITHMETIC = frozenset(
    f"{place}{kind}"
    for place in ("", "i", "r")
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
"""Functions that make each value from the values in the same place of their arguments."""

_RESHAPES = frozenset(("view", "reshape", "flatten", "unflatten", "view_as", "reshape_as"))
_VIEWS = frozenset(
    (
        *("permute", "transpose", "movedim", "swapaxes", "t", "getitem", "narrow", "select"),
        *("chunk", "split", "tensor_split", "unbind", "unsqueeze", "squeeze", "expand"),
    )
)
_MOVES = _VIEWS | frozenset(
    (
        *("roll", "flip", "repeat", "tile", "rot90", "index_select"),
        *("channel_shuffle", "pixel_shuffle", "pixel_unshuffle"),
    )
)
"""Functions that only move the values of their first argument; views do so without a copy."""

_FRESH = frozenset(
    (
        *("new_ones", "new_zeros", "new_full", "new_empty", "new_tensor", "zeros_like"),
        *("ones_like", "full_like", "empty_like", "rand_like", "randn_like"),
    )
)
"""Functions that take no more than shape and type from what they are given."""

_POOLS = frozenset(("max_pool2d", "avg_pool2d", "lp_pool2d"))
_REDUCES = frozenset(("mean", "sum", "amax", "amin", "var", "std", "logsumexp", "softmax"))
_TOO_MANY = 1 << 26  # values of an edge; what would take more is taken to see everything


def of_pixels(image: Tensor) -> Reach:
    """The reach of an input, ``(1, C, H, W)``: every value sees its own pixel."""
    rows = torch.arange(image.shape[2], dtype=torch.float32).reshape(1, 1, -1, 1)
    columns = torch.arange(image.shape[3], dtype=torch.float32).reshape(1, 1, 1, -1)
    return -rows, -columns, rows + 1, columns + 1


@dataclass(frozen=True, eq=False, slots=True)
class Operation:
    """One call of a torch function: its tensors by shape and reach, in order, and its results."""

    func: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    shapes: Sequence[torch.Size]
    reaches: Sequence[Reach | None]
    results: Sequence[Tensor]

    def given(self, place: int, name: str, default: Any = None) -> Any:
        """An argument by its place or its name."""
        return self.args[place] if place < len(self.args) else self.kwargs.get(name, default)


def through(op: Operation) -> list[Reach]:
    """What an operation's results see."""
    name = function_name(op.func)
    if name in _POINTWISE or (name == "batch_norm" and op.given(5, "training") is False):
        return [union(op.reaches, tensor.ndim) for tensor in op.results]
    if name in _FRESH:
        return [union([], tensor.ndim) for tensor in op.results]
    found: list[Reach] = []
    if name in ("cat", "concat"):
        found = [_joined(op)]
    elif op.reaches[0] is not None and name in _RULES:
        found = _RULES[name](op, op.reaches[0])
    rest = op.reaches[1:] if name not in ("cat", "concat") else []
    return [
        union([found[place], total(rest, tensor.ndim)], tensor.ndim)
        if place < len(found)
        else total(op.reaches, tensor.ndim)
        for place, tensor in enumerate(op.results)
    ]


def union(reaches: Iterable[Reach | None], ndim: int) -> Reach:
    """What a tensor of `ndim` dimensions sees that is made from others value by value."""
    made = [torch.full((1,) * ndim, -math.inf)] * 4
    for reach in filter(None, reaches):
        for place, edge in enumerate(reach):
            made[place] = torch.maximum(made[place], edge)
    return made[0], made[1], made[2], made[3]


def total(reaches: Iterable[Reach | None], ndim: int) -> Reach:
    """What a tensor of `ndim` dimensions sees that depends on all of the others everywhere."""
    return union([_each(reach, torch.amax) for reach in reaches if reach], ndim)


def _each(reach: Reach, change: Callable[[Tensor], Tensor]) -> Reach:
    up, left, down, right = map(change, reach)
    return up, left, down, right


# The rules: from an operation and what its first argument sees to what its results see.


def _convolved(op: Operation, reach: Reach) -> list[Reach]:
    kernel = op.shapes[1][2:]
    if len(kernel) != 2:
        return []
    padding: Any = op.given(4, "padding", 0)
    stride, dilation = _pair(op.given(3, "stride", 1)), _pair(op.given(5, "dilation", 1))
    if padding == "same":  # an odd one goes to the end
        padding = [step * (size - 1) // 2 for step, size in zip(dilation, kernel, strict=True)]
    pads = (0, 0) if padding == "valid" else _pair(padding)
    made = op.results[0].shape[-2:]
    lines = (
        _windows(made[axis], kernel[axis], stride[axis], pads[axis], dilation[axis])
        for axis in (0, 1)
    )
    return [_swept(_all_channels(reach), *lines)]


def _convolved_back(op: Operation, reach: Reach) -> list[Reach]:
    """A transposed convolution: place o gets value i where o = i·stride − padding + k·dilation."""
    kernel = op.shapes[1][2:]
    stride, pads = _pair(op.given(3, "stride", 1)), _pair(op.given(4, "padding", 0))
    dilation, made = _pair(op.given(7, "dilation", 1)), op.results[0].shape[-2:]
    lines = []
    for axis in (0, 1):
        starts = torch.arange(made[axis])[:, None] + pads[axis]
        from_there = starts - torch.arange(kernel[axis]) * dilation[axis]
        fits = from_there % stride[axis] == 0
        lines.append(torch.where(fits, from_there // stride[axis], -1))
    return [_swept(_all_channels(reach), *lines)]


def _pooled(op: Operation, reach: Reach) -> list[Reach]:
    lp = function_name(op.func) == "lp_pool2d"
    kernel = _pair(op.given(2 if lp else 1, "kernel_size"))
    stride = _pair(op.given(3 if lp else 2, "stride") or kernel)
    pads = (0, 0) if lp else _pair(op.given(3, "padding", 0))
    largest = function_name(op.func) == "max_pool2d"
    dilation = _pair(op.given(4, "dilation", 1) if largest else 1)
    made = op.results[0].shape[-2:]
    lines = (
        _windows(made[axis], kernel[axis], stride[axis], pads[axis], dilation[axis])
        for axis in (0, 1)
    )
    return [_swept(reach, *lines)] * len(op.results)


def _adaptively_pooled(op: Operation, reach: Reach) -> list[Reach]:
    """Adaptive pooling: window o is from ⌊o·L/count⌋ up to ⌈(o+1)·L/count⌉."""
    lines = []
    for axis in (-2, -1):
        length, count = op.shapes[0][axis], op.results[0].shape[axis]
        places = torch.arange(count)[:, None]
        starts, ends = places * length // count, -(-(places + 1) * length // count)
        inside = starts + torch.arange(int((ends - starts).max()))
        lines.append(torch.where(inside < ends, inside, -1))
    return [_swept(reach, *lines)] * len(op.results)


def _resized(op: Operation, reach: Reach) -> list[Reach]:
    """Interpolation, by its two neighbours, or four where it is cubic."""
    mode = op.given(3, "mode", "nearest")
    if mode not in ("nearest", "nearest-exact", "bilinear", "bicubic") or op.kwargs.get(
        "antialias"
    ):
        return []
    lines = []
    for axis in (-2, -1):
        length, count = op.shapes[0][axis], op.results[0].shape[axis]
        places = torch.arange(count, dtype=torch.float64)[:, None]
        if op.given(4, "align_corners"):
            at = places * (length - 1) / max(1, count - 1)
        elif mode == "nearest":
            at = places * length / count
        else:
            at = (places + 0.5) * length / count - 0.5
        if mode == "nearest-exact":
            at = at + 0.5
        near = {"bilinear": [0, 1], "bicubic": [-1, 0, 1, 2]}.get(mode, [0])
        inside = at.clamp(min=0).floor().long() + torch.tensor(near)
        lines.append(inside.clamp(0, length - 1))
    return [_swept(reach, *lines)]


def _padded(op: Operation, reach: Reach) -> list[Reach]:
    pads, mode = op.given(1, "pad"), op.given(2, "mode", "constant")
    if len(pads) > 4:
        return []
    full = _full(reach, op.shapes[0], axes=(-2, -1))
    value = -math.inf if mode == "constant" else None
    return [_each(full, lambda edge: F.pad(edge, pads, mode, value))]


def _moved(op: Operation, reach: Reach) -> list[Reach]:
    if op.shapes[0].numel() > _TOO_MANY and function_name(op.func) not in _VIEWS:
        return []
    edges = [
        [tensor for _, tensor in hooks.tensors_in(op.func(edge, *op.args[1:], **op.kwargs))]
        for edge in (edge.expand(op.shapes[0]) for edge in reach)
    ]
    return [_shortened(up, left, down, right) for up, left, down, right in zip(*edges, strict=True)]


def _reshaped(op: Operation, reach: Reach) -> list[Reach]:
    shape = op.results[0].shape
    try:
        return [_shortened(*(edge.expand(op.shapes[0]).view(shape) for edge in reach))]
    except RuntimeError:  # it takes a copy
        if shape.numel() > _TOO_MANY:
            return []
        return [_shortened(*(edge.expand(op.shapes[0]).reshape(shape) for edge in reach))]


def _reduced(op: Operation, reach: Reach) -> list[Reach]:
    dims = op.given(1, "dim", op.kwargs.get("axis"))
    if not isinstance(dims, int | list | tuple) or dims in ([], ()):
        return []
    flat = _each(reach, lambda edge: edge.amax(dims, keepdim=True))
    if op.results[0].ndim < len(op.shapes[0]):
        flat = _each(flat, lambda edge: edge.amax(dims))
    return [flat] * len(op.results)


def _mixed(op: Operation, reach: Reach) -> list[Reach]:
    """A linear layer mixes the last dimension; a layer norm as many as it was made for."""
    normed = op.given(1, "normalized_shape") if function_name(op.func) == "layer_norm" else (0,)
    dims = tuple(range(-len(normed), 0))
    return [_each(reach, lambda edge: edge.amax(dims, keepdim=True))]


def _joined(op: Operation) -> Reach:
    """Tensors one behind the other; along the channels they count together."""
    made = op.results[0]
    dim = int(op.given(1, "dim", op.kwargs.get("axis", 0))) % made.ndim
    if dim < 2:
        return union(
            [_each(r, lambda e: e.amax(dim, keepdim=True)) for r in op.reaches if r], made.ndim
        )
    parts = [
        _full(reach or union([], made.ndim), shape, axes=(dim,))
        for reach, shape in zip(op.reaches, op.shapes, strict=True)
    ]
    edges = []
    for place in range(4):
        sizes = np.broadcast_shapes(*(part[place].narrow(dim, 0, 1).shape for part in parts))
        edges.append(
            torch.cat(
                [part[place].expand(*sizes[:dim], -1, *sizes[dim + 1 :]) for part in parts], dim
            )
        )
    return edges[0], edges[1], edges[2], edges[3]


_RULES: dict[str, Callable[[Operation, Reach], list[Reach]]] = {
    "conv2d": _convolved,
    "conv_transpose2d": _convolved_back,
    "interpolate": _resized,
    "pad": _padded,
    "linear": _mixed,
    "layer_norm": _mixed,
    **dict.fromkeys(_POOLS, _pooled),
    **dict.fromkeys(("adaptive_avg_pool2d", "adaptive_max_pool2d"), _adaptively_pooled),
    **dict.fromkeys(_RESHAPES, _reshaped),
    **dict.fromkeys(_MOVES, _moved),
    **dict.fromkeys(_REDUCES, _reduced),
}


def _windows(count: int, kernel: int, stride: int, padding: int, dilation: int) -> Tensor:
    """Which places each of `count` windows takes in, ``(count, kernel)``; -1 is in the padding."""
    return torch.arange(count)[:, None] * stride - padding + torch.arange(kernel) * dilation


def _swept(reach: Reach, rows: Tensor, columns: Tensor) -> Reach:
    """What sees, of each edge, the furthest among those rows and columns."""
    return _each(reach, lambda edge: _furthest(_furthest(edge, -2, rows), -1, columns))


def _furthest(edge: Tensor, dim: int, places: Tensor) -> Tensor:
    """The maximum over `places`, ``(count, k)``, along one dimension; there is none outside it."""
    length = edge.shape[dim]
    if length == 1:
        return edge  # the same all along it
    blank = edge.new_full((1,), -math.inf).expand(*edge.narrow(dim, 0, 1).shape)
    inside = torch.where((places >= 0) & (places < length), places, length)
    taken = torch.cat([edge, blank], dim).index_select(dim, inside.flatten())
    spread: Tensor = taken.unflatten(dim, tuple(places.shape))  # type: ignore[no-untyped-call]
    return spread.amax(dim)


def _all_channels(reach: Reach) -> Reach:
    return _each(reach, lambda edge: edge.amax(-3, keepdim=True))


def _full(reach: Reach, shape: Sequence[int], axes: Sequence[int]) -> Reach:
    """The same reach with each edge at its full length along `axes`."""

    def lengthened(edge: Tensor) -> Tensor:
        sizes = list(edge.shape)
        for axis in axes:
            sizes[axis] = shape[axis]
        return edge.expand(sizes)

    return _each(reach, lengthened)


def _shortened(*edges: Tensor) -> Reach:
    """The edges with length 1 along each dimension in which they are the same by construction."""
    up, left, down, right = edges

    def short(edge: Tensor) -> Tensor:
        for dim, stride in enumerate(edge.stride()):
            if stride == 0 and edge.shape[dim] > 1:
                edge = edge.narrow(dim, 0, 1)
        return edge

    return _each((up, left, down, right), short)


def _pair(given: Any) -> tuple[int, int]:
    """(vertical, horizontal) of an argument that may be one number for both."""
    if isinstance(given, int):
        return given, given
    return int(given[0]), int(given[-1])
