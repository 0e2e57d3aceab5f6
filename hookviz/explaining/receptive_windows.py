"""Receptive rules of windows: convolution, pooling, padding and resizing, which read near cells.

From an operation and what its first argument sees to what each of its results sees; an empty list
where the operation is none that the rule knows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hookviz.explaining.conv_arguments import padding_around, pair
from hookviz.explaining.endless import Line, Taps, shares, window
from hookviz.explaining.reach import Edges, Operation, Reach, each_edge
from hookviz.hooking.torch_functions import function_name

_AXES = (-2, -1)
_FINEST = 10_000  # a factor that resizes is taken for a fraction with no larger denominator

_NEAR = {"nearest": [0], "nearest-exact": [0], "bilinear": [0, 1], "bicubic": [-1, 0, 1, 2]}
"""How interpolation takes cells, counted from the one before the place."""


def convolved(op: Operation, reach: Reach) -> list[Reach]:
    """A two-dimensional convolution: all channels, and the cells under the kernel's taps."""
    kernel = op.shapes[1][2:]
    if len(kernel) != 2:
        return []
    stride, dilation = pair(op.argument(3, "stride", 1)), pair(op.argument(5, "dilation", 1))
    left, _, top, _ = padding_around(op.argument(4, "padding", 0), kernel, dilation)
    taps = list(map(window, kernel, stride, (top, left), dilation))
    return [_swept(op, _over_channels(reach), taps)]


def transposed(op: Operation, reach: Reach) -> list[Reach]:
    """A transposed convolution: cell o gets value i where o = i·stride − padding + k·dilation."""
    kernel = op.shapes[1][2:]
    stride, pads = pair(op.argument(3, "stride", 1)), pair(op.argument(4, "padding", 0))
    dilation = pair(op.argument(7, "dilation", 1))
    taps = []
    for axis in (0, 1):
        places = np.arange(stride[axis])[:, None] + pads[axis]
        places = places - np.arange(kernel[axis]) * dilation[axis]
        taps.append(Taps(places // stride[axis], 1, places % stride[axis] == 0))
    return [_swept(op, _over_channels(reach), taps)]


def pooled(op: Operation, reach: Reach) -> list[Reach]:
    """Pooling: the cells of each window, in the same channel."""
    lp = function_name(op.func) == "lp_pool2d"
    kernel = pair(op.argument(2 if lp else 1, "kernel_size"))
    stride = pair(op.argument(3 if lp else 2, "stride") or kernel)
    pads = (0, 0) if lp else pair(op.argument(3, "padding", 0))
    largest = function_name(op.func) == "max_pool2d"
    dilation = pair(op.argument(4, "dilation", 1) if largest else 1)
    return [_swept(op, reach, list(map(window, kernel, stride, pads, dilation)))] * len(op.results)


def adaptively_pooled(op: Operation, reach: Reach) -> list[Reach]:
    """Adaptive pooling, with the windows that it has on this input; one cell sees all."""
    given, made = op.shapes[0], op.results[0].shape
    swept = _swept(op, reach, [shares(given[axis], made[axis]) for axis in _AXES])
    swept = swept.with_lines(lambda line: line if made[line.dim] > 1 else None)
    return [swept] * len(op.results)


def unfolded(op: Operation, reach: Reach) -> list[Reach]:
    """``pixel_unshuffle``: the cells of each square become channels of one cell."""
    factor = int(op.argument(1, "downscale_factor"))
    return [_swept(op, _over_channels(reach), [window(factor, factor)] * 2)]


def folded(op: Operation, reach: Reach) -> list[Reach]:
    """``pixel_shuffle``: the channels of one cell become the cells of a square."""
    factor = int(op.argument(1, "upscale_factor"))
    return [_swept(op, _over_channels(reach), [_places(Fraction(1, factor), Fraction(0), [0])] * 2)]


def padded(op: Operation, reach: Reach) -> list[Reach]:
    """``F.pad``: zeros see nothing, mirrored cells what they mirror; an endless map has no edge."""
    pads, mode, shape = op.argument(1, "pad"), op.argument(2, "mode", "constant"), op.shapes[0]
    cells, taps = {}, {}
    for place, (before, after) in enumerate(zip(pads[::2], pads[1::2], strict=True)):
        dim = -1 - place
        taps[dim] = window(1, padding=before)
        places = torch.arange(-before, shape[dim] + after)
        if mode != "constant":
            ramp = torch.arange(shape[dim], dtype=torch.float64).reshape(1, 1, -1)
            places = F.pad(ramp, (before, after), mode).flatten().long()
        cells[dim] = places[:, None]
    lines = reach.with_lines(lambda line: _through(line, taps))
    return [replace(lines, edges=_gathered(op, reach.edges, cells))]


def resized(op: Operation, reach: Reach) -> list[Reach]:
    """Interpolation, by its two neighbours, or four where it is cubic.

    Cell o lies at ``factor · o + offset`` of the map that is resized.
    """
    mode, aligned = op.argument(3, "mode", "nearest"), op.argument(4, "align_corners")
    factors = None if op.argument(5, "recompute_scale_factor") else op.argument(2, "scale_factor")
    if mode not in _NEAR or len(op.shapes[0]) != 4 or op.kwargs.get("antialias"):
        return []
    near, cells, taps = _NEAR[mode], {}, {}
    for axis, given in zip(_AXES, _for_each(factors), strict=True):
        length, count = op.shapes[0][axis], op.results[0].shape[axis]
        factor = Fraction(length, count) if given is None else 1 / _fraction(given)
        endless = _halvings(length, count) if given is None else factor
        if aligned:
            # A little less than the endless factor, and more so with every cell.
            offset, drift = Fraction(0), Fraction(-1, _FINEST)
            factor = Fraction(length - 1, max(1, count - 1))
        else:
            offset, drift = _offset(mode, factor), _offset(mode, endless)
        base = _places(factor, offset, [0]).of(count).clamp(min=-1 if mode == "bicubic" else 0)
        cells[axis] = (base + torch.tensor(near)).clamp(0, length - 1)
        taps[axis] = _places(endless, drift, near)
    lines = reach.with_lines(lambda line: _through(line, taps))
    return [replace(lines, edges=_gathered(op, reach.edges, cells))]


def _offset(mode: str, factor: Fraction) -> Fraction:
    return {"nearest": Fraction(0), "nearest-exact": factor / 2}.get(mode, (factor - 1) / 2)


def _for_each(factors: float | Sequence[float] | None) -> Sequence[float | None]:
    return factors if isinstance(factors, Sequence) else (factors, factors)


def _fraction(factor: float) -> Fraction:
    return Fraction(factor).limit_denominator(_FINEST)


def _halvings(length: int, count: int) -> Fraction:
    """The factor from one cell to the next where a map of `length` is resized to `count` cells.

    A map of 13 that a layer of stride 2 made 7, or 6, of is twice as large, but for its end.
    """
    less, more = sorted((length, count))
    for power in range(more.bit_length()):
        halved = more / 2**power
        if less in (math.floor(halved), math.ceil(halved)):
            return Fraction(2**power if length == more else Fraction(1, 2**power))
    return Fraction(length, count)


def _places(factor: Fraction, offset: Fraction, near: Sequence[int]) -> Taps:
    """The taps ⌊factor · o + offset⌋ + `near` of cell o."""
    places = [math.floor(factor * cell + offset) for cell in range(factor.denominator)]
    cells = np.array(places)[:, None] + np.array(near)
    return Taps(cells, factor.numerator, np.ones(cells.shape, bool))


def _swept(op: Operation, reach: Reach, taps: Sequence[Taps]) -> Reach:
    """What sees the furthest among the cells under these taps, over rows and over columns."""
    along = dict(zip(_AXES, taps, strict=True))
    cells = {axis: taps.of(op.results[0].shape[axis]) for axis, taps in along.items()}
    lines = reach.with_lines(lambda line: _through(line, along))
    return replace(lines, edges=_gathered(op, reach.edges, cells))


def _through(line: Line, taps: Mapping[int, Taps]) -> Line | None:
    return line.through(taps[line.dim]) if line.dim in taps else line


def _gathered(op: Operation, edges: Edges, cells: Mapping[int, Tensor]) -> Edges:
    """The furthest of each edge over `cells`, ``(count, k)``, along each of the dimensions."""
    for dim, places in cells.items():
        edges = each_edge(edges, partial(_furthest, op, dim, places))
    return edges


def _furthest(op: Operation, dim: int, cells: Tensor, edge: Tensor) -> Tensor:
    """The maximum over `cells` along one dimension, beyond which there is nothing."""
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


def _over_channels(reach: Reach) -> Reach:
    edges = each_edge(reach.edges, lambda edge: edge.amax(-3, keepdim=True))
    return replace(reach.with_lines(lambda line: line if line.dim != -3 else None), edges=edges)
