"""Count values into the bins of a histogram."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

BINS = 48
"""Of equal width, from the lowest to the highest value."""


@dataclass(frozen=True, eq=False, slots=True)
class Histogram:
    """Number of values in each bin.

    Attributes:
        counts: int64, ``(BINS,)``.
        edges: float64, ``(BINS + 1,)``, in the values' unit; a bin has its lower edge, and the last
            one both.
        left_out: how many values are NaN or infinite, and in no bin.
    """

    counts: NDArray[np.int64] = field(repr=False)
    edges: NDArray[np.float64] = field(repr=False)
    left_out: int

    @property
    def middles(self) -> NDArray[np.float64]:
        """Middle of each bin, ``(BINS,)``."""
        return (self.edges[1:] + self.edges[:-1]) / 2


def histogram(values: NDArray[np.float32] | NDArray[np.float64]) -> Histogram:
    """Count the finite values, of any shape, into `BINS` bins of equal width.

    Without any finite value, and where all are the same, the bins are 1 wide in all, as NumPy's.
    """
    finite = values[np.isfinite(values)].astype(np.float64)
    counts, edges = np.histogram(finite, BINS)
    return Histogram(counts.astype(np.int64), edges, values.size - finite.size)
