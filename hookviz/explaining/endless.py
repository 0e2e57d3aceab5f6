"""How far cells see along rows or columns of an image that goes on for ever.

A layer's windows are the same all along a map, so what one period of cells sees tells of all: no
large image has to go through the network.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_LONGEST = 4096  # cells of a period; a line with a longer one is taken to have no end


@dataclass(frozen=True, eq=False, slots=True)
class Taps:
    """Which cells of a map each cell of the next one is made from, along one dimension.

    Cell o is made from ``cells[o % period] + step · (o // period)``.

    Attributes:
        cells: int64 ``(period, k)``; a cell that is named twice counts once.
        step: by how many cells the next period is further on.
        fit: which of `cells` are meant at all, bool ``(period, k)``.
    """

    cells: NDArray[np.int64]
    step: int
    fit: NDArray[np.bool_]

    @property
    def period(self) -> int:
        """How many cells there are before the same windows come again."""
        return len(self.cells)

    def of(self, count: int) -> Tensor:
        """The cells that each of the first `count` is made from, int64 ``(count, k)``.

        Those that are not meant are −1, as are others in the padding before the first cell.
        """
        cells, fit = self.windows(np.arange(count))
        return torch.from_numpy(np.where(fit, cells, -1))

    def windows(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The cells that those at `places` are made from, ``(places, k)``, and which are meant."""
        turns, residues = np.divmod(places, self.period)
        return self.cells[residues] + self.step * turns[:, None], self.fit[residues]


def window(kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1) -> Taps:
    """The taps of a convolution or a pooling."""
    cells = np.arange(kernel)[None] * dilation - padding
    return Taps(cells, stride, np.ones(cells.shape, bool))


def shares(length: int, count: int) -> Taps:
    """The taps of adaptive pooling: cell o has ⌊o·length/count⌋ up to ⌈(o+1)·length/count⌉."""
    common = math.gcd(length, count)
    length, count = length // common, count // common
    cells = np.arange(count)[:, None]
    starts, ends = cells * length // count, -(-(cells + 1) * length // count)
    inside = starts + np.arange(int((ends - starts).max()))
    return Taps(inside, length, inside < ends)


@dataclass(frozen=True, eq=False, slots=True)
class Line:
    """What cells along one dimension of a tensor see of the rows, or of the columns, of the image.

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
        """How many cells there are before they see the same again, further on."""
        return int(self.ends.shape[1])

    @property
    def size(self) -> int:
        """How many pixels the cell that sees most sees."""
        return max(0, int(self.ends.sum(0).max()))

    @property
    def stride(self) -> float:
        """Pixels from one cell's field to the next one's, on average."""
        return self.shift / self.period

    def at(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """What the cells at `places`, also beyond the map, see: `ends` of each, ``(2, …)``."""
        turns, residues = np.divmod(places, self.period)
        further = self.shift * turns
        ends: NDArray[np.float64] = self.ends[:, residues] + np.stack((-further, further))
        return ends

    def through(self, taps: Taps) -> "Line | None":
        """What the cells see that are made from these; None where it takes too long a period."""
        turns = self.period // math.gcd(self.period, taps.step)
        period = turns * taps.period
        if period > _LONGEST:
            return None
        cells, fit = taps.windows(np.arange(period))
        ends = np.where(fit, self.at(cells), -np.inf).max(-1)
        return Line(self.dim, ends, self.shift * taps.step * turns // self.period)


def of_pixels(dim: int) -> Line:
    """Every pixel sees itself."""
    return Line(dim, np.array([[0.0], [1.0]]), 1)


def together(lines: Iterable[Line | None]) -> Line | None:
    """What cells see that are made from the cells in the same place of several tensors.

    None, which is everything, where one of them sees everything, or where they go on differently.
    """
    return reduce(_both, lines)


def _both(one: Line | None, other: Line | None) -> Line | None:
    if one is None or other is None or one.dim != other.dim:
        return None
    if one.shift * other.period != other.shift * one.period:
        return None
    period = math.lcm(one.period, other.period)
    if period > _LONGEST:
        return None
    places = np.arange(period)
    ends = np.maximum(one.at(places), other.at(places))
    return Line(one.dim, ends, one.shift * period // one.period)


def moved_to(line: Line | None, dim: int) -> Line | None:
    """The same cells along another dimension."""
    return line and replace(line, dim=dim)
