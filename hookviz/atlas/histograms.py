"""Count values in histograms that need no range beforehand and can be added up.

A channel's bins are 64 of one width, half of them below 0. The width is the least power of two at
which every value so far has a bin; where a larger value comes, bins are joined in pairs. So the
result depends on the values alone, not on their order, and two histograms have a sum.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BINS = 64
"""Bins of each channel."""

SMALLEST = -64
"""Least exponent of a bin's width; that of a channel that was always 0."""

_HALF = BINS // 2
_HALF_EXPONENT = 5  # 2⁵ bins above 0


class Histograms:
    """Histograms of the values of C channels.

    Attributes:
        counts: int64, ``(C, BINS)``; bin i holds values from ``(i − 32)·w`` to ``(i − 31)·w``, the
            latter not included.
        exponents: int16, ``(C,)``; the width w is 2 to this power.
    """

    def __init__(self, channels: int) -> None:
        self.counts: NDArray[np.int64] = np.zeros((channels, BINS), np.int64)
        self.exponents: NDArray[np.int16] = np.full(channels, SMALLEST, np.int16)

    def add(self, rows: slice, *layers: NDArray[np.float32]) -> None:
        """Count finite values of the channels of `rows`, ``(c, M)`` of each layer in turn.

        Raises:
            ValueError: there are other channels than `rows`.
        """
        finite = [_finite(values) for values in layers]
        largest = np.concatenate([found.largest for found in finite])
        needed = np.frexp(largest)[1] - _HALF_EXPONENT
        needed[largest == 0] = SMALLEST
        self._widen(np.maximum(self.exponents[rows], needed), rows)
        scales = np.ldexp(np.float32(1), -self.exponents[rows].astype(np.int32))[:, None]
        counts, first = self.counts[rows], 0
        for found in finite:
            channels = slice(first, first + len(found.values))
            counts[channels] += _counted(found, scales[channels])
            first = channels.stop

    def merge(self, other: "Histograms") -> None:
        """Add the counts of the same channels over other values."""
        exponents = np.maximum(self.exponents, other.exponents)
        self._widen(exponents, slice(None))
        same = Histograms(len(exponents))
        same.counts, same.exponents = other.counts.copy(), other.exponents.copy()
        same._widen(exponents, slice(None))
        self.counts += same.counts

    def _widen(self, exponents: NDArray[np.integer], rows: slice) -> None:
        """Join bins until the channels of `rows` have these widths, which are no smaller ones."""
        steps = (exponents - self.exponents[rows]).astype(np.int64)
        if not steps.any():
            return
        counts = self.counts[rows]
        for step in np.unique(steps[steps > 0]):
            wider = np.flatnonzero(steps == step)
            if counts[wider].any():
                to = ((np.arange(BINS) - _HALF) >> min(int(step), BINS)) + _HALF
                joined = np.zeros((wider.size, BINS), np.int64)
                np.add.at(joined.T, to, counts[wider].T)
                counts[wider] = joined
        self.exponents[rows] = exponents


class _Finite(NamedTuple):
    """Values of channels, ``(c, M)``: 0 where they are not finite, and where that is."""

    values: NDArray[np.float32]
    is_finite: NDArray[np.bool_] | None  # None where all are
    largest: NDArray[np.float32]


def _finite(values: NDArray[np.float32]) -> _Finite:
    largest = np.abs(values).max(axis=1, initial=0)
    if np.isfinite(largest).all():
        return _Finite(values, None, largest)
    is_finite = np.isfinite(values)
    values = np.where(is_finite, values, np.float32(0))
    return _Finite(values, is_finite, np.abs(values).max(axis=1))


def _counted(found: _Finite, scales: NDArray[np.float32]) -> NDArray[np.intp]:
    """Count the values of each channel by its bins, ``(c, BINS)``."""
    bins = found.values * scales  # by powers of two, which is exact
    bins = np.floor(bins, out=bins).astype(np.int32)
    bins += (_HALF + BINS * np.arange(len(bins), dtype=np.int32))[:, None]
    # in the order of memory, which does not count, and is not that of the channels
    chosen = bins.ravel("K") if found.is_finite is None else bins[found.is_finite]
    return np.bincount(chosen, minlength=BINS * len(bins)).reshape(len(bins), BINS)


def edges(exponent: int) -> NDArray[np.float64]:
    """Return the edges of a channel's bins, ``(BINS + 1,)``, by the exponent of their width."""
    return np.ldexp(np.arange(-_HALF, _HALF + 1).astype(np.float64), exponent)
