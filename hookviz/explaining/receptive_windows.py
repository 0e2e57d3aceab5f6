"""Receptive rules of windows: convolutions, poolings and resizing, which read nearby cells.

From an operation and what its first argument sees to what each of its results sees; an empty list
where the operation is none that the rule knows.
"""

import math

import torch
from torch import Tensor

from hookviz.explaining.conv_arguments import padding_around, pair
from hookviz.explaining.reach import Operation, Reach, each_edge
from hookviz.hooking.torch_functions import function_name


def convolved(op: Operation, reach: Reach) -> list[Reach]:
    """A two-dimensional convolution: all channels, and the cells under the kernel's taps."""
    kernel = op.shapes[1][2:]
    if len(kernel) != 2:
        return []
    stride, dilation = pair(op.argument(3, "stride", 1)), pair(op.argument(5, "dilation", 1))
    left, _, top, _ = padding_around(op.argument(4, "padding", 0), kernel, dilation)
    pads, cells = (top, left), op.results[0].shape[-2:]
    lines = (
        _windows(cells[axis], kernel[axis], stride[axis], pads[axis], dilation[axis])
        for axis in (0, 1)
    )
    return [_swept(_over_channels(reach), *lines)]


def transposed(op: Operation, reach: Reach) -> list[Reach]:
    """A transposed convolution: cell o gets value i where o = i·stride − padding + k·dilation."""
    kernel = op.shapes[1][2:]
    stride, pads = pair(op.argument(3, "stride", 1)), pair(op.argument(4, "padding", 0))
    dilation, cells = pair(op.argument(7, "dilation", 1)), op.results[0].shape[-2:]
    lines = []
    for axis in (0, 1):
        starts = torch.arange(cells[axis])[:, None] + pads[axis]
        taps = starts - torch.arange(kernel[axis]) * dilation[axis]
        fits = taps % stride[axis] == 0
        lines.append(torch.where(fits, taps // stride[axis], -1))
    return [_swept(_over_channels(reach), *lines)]


def pooled(op: Operation, reach: Reach) -> list[Reach]:
    """Pooling: the cells of each window, in the same channel."""
    lp = function_name(op.func) == "lp_pool2d"
    kernel = pair(op.argument(2 if lp else 1, "kernel_size"))
    stride = pair(op.argument(3 if lp else 2, "stride") or kernel)
    pads = (0, 0) if lp else pair(op.argument(3, "padding", 0))
    largest = function_name(op.func) == "max_pool2d"
    dilation = pair(op.argument(4, "dilation", 1) if largest else 1)
    cells = op.results[0].shape[-2:]
    lines = (
        _windows(cells[axis], kernel[axis], stride[axis], pads[axis], dilation[axis])
        for axis in (0, 1)
    )
    return [_swept(reach, *lines)] * len(op.results)


def adaptively_pooled(op: Operation, reach: Reach) -> list[Reach]:
    """Adaptive pooling: window o is from ⌊o·L/count⌋ up to ⌈(o+1)·L/count⌉."""
    lines = []
    for axis in (-2, -1):
        length, count = op.shapes[0][axis], op.results[0].shape[axis]
        cells = torch.arange(count)[:, None]
        starts, ends = cells * length // count, -(-(cells + 1) * length // count)
        inside = starts + torch.arange(int((ends - starts).max()))
        lines.append(torch.where(inside < ends, inside, -1))
    return [_swept(reach, *lines)] * len(op.results)


def resized(op: Operation, reach: Reach) -> list[Reach]:
    """Interpolation, by its two neighbours, or four where it is cubic."""
    mode = op.argument(3, "mode", "nearest")
    if mode not in ("nearest", "nearest-exact", "bilinear", "bicubic") or op.kwargs.get(
        "antialias"
    ):
        return []
    lines = []
    for axis in (-2, -1):
        length, count = op.shapes[0][axis], op.results[0].shape[axis]
        cells = torch.arange(count, dtype=torch.float64)[:, None]
        if op.argument(4, "align_corners"):
            at = cells * (length - 1) / max(1, count - 1)
        elif mode == "nearest":
            at = cells * length / count
        else:
            at = (cells + 0.5) * length / count - 0.5
        if mode == "nearest-exact":
            at = at + 0.5
        near = {"bilinear": [0, 1], "bicubic": [-1, 0, 1, 2]}.get(mode, [0])
        inside = at.clamp(min=0).floor().long() + torch.tensor(near)
        lines.append(inside.clamp(0, length - 1))
    return [_swept(reach, *lines)]


def _windows(count: int, kernel: int, stride: int, padding: int, dilation: int) -> Tensor:
    """Which cells each of `count` windows takes in, ``(count, kernel)``; -1 is in the padding."""
    return torch.arange(count)[:, None] * stride - padding + torch.arange(kernel) * dilation


def _swept(reach: Reach, rows: Tensor, columns: Tensor) -> Reach:
    """What sees, of each edge, the furthest among those rows and columns."""
    return each_edge(reach, lambda edge: _furthest(_furthest(edge, -2, rows), -1, columns))


def _furthest(edge: Tensor, dim: int, cells: Tensor) -> Tensor:
    """The maximum over `cells`, ``(count, k)``, along one dimension; there is none outside it."""
    length = edge.shape[dim]
    if length == 1:
        return edge  # the same all along it
    blank = edge.new_full((1,), -math.inf).expand(*edge.narrow(dim, 0, 1).shape)
    inside = torch.where((cells >= 0) & (cells < length), cells, length)
    taken = torch.cat([edge, blank], dim).index_select(dim, inside.flatten())
    spread: Tensor = taken.unflatten(dim, tuple(cells.shape))  # type: ignore[no-untyped-call]
    return spread.amax(dim)


def _over_channels(reach: Reach) -> Reach:
    return each_edge(reach, lambda edge: edge.amax(-3, keepdim=True))
