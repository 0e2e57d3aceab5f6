"""Track the receptive field along one axis of an unbounded image: its size, and the jump per cell.

A layer's windows are the same all along a map, so the fields of one period of cells tell those of
all: no large image has to go through the network.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

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
