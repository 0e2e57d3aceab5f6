"""Compute Spearman's rank correlation of two arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def rank_correlation(a: NDArray[np.floating[Any]], b: NDArray[np.floating[Any]]) -> float:
    """Return Spearman's rank correlation of two arrays of one shape, −1…1.

    Pearson's correlation of the ranks, where equal values share the mean of their ranks (Spearman,
    "The Proof and Measurement of Association between Two Things", 1904). NaN where either has one
    value everywhere, or any NaN.

    >>> rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([1.0, 8.0, 9.0]))
    1.0
    """
    if np.isnan(a).any() or np.isnan(b).any():
        return float("nan")
    first, second = (_ranks(values) for values in (a, b))
    first -= first.mean()
    second -= second.mean()
    size = np.sqrt(np.square(first).sum() * np.square(second).sum())
    return float(np.clip((first * second).sum() / size, -1, 1)) if size else float("nan")


def _ranks(values: NDArray[np.floating[Any]]) -> Floats:
    """Return the rank of each value, from 1; the mean rank for equal ones."""
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Floats = (last - (counts - 1) / 2)[index.ravel()]
    return ranks
