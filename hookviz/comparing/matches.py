"""Find for each channel of a layer the most correlated channel of another, over many images."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False, slots=True)
class ChannelMatches:
    """For each channel of A's layer the most correlated channel of B's layer.

    Attributes:
        layer: A's, by its written address.
        other_layer: B's.
        channels: the channel of B's layer, int64 ``(C,)``; -1 where there is none.
        correlations: Pearson's, float64 ``(C,)``, of the two channels' means over the images; NaN
            where there is none.
    """

    layer: str
    other_layer: str
    channels: NDArray[np.int64]
    correlations: Floats = field(repr=False)

    @property
    def best_first(self) -> NDArray[np.int64]:
        """A's channels by their correlation, the highest first, int64 ``(C,)``; NaN last."""
        return np.argsort(-self.correlations, kind="stable").astype(np.int64)


def best_matches(first: Rows, second: Rows) -> tuple[NDArray[np.int64], Floats]:
    """Return for each column of `first` the most correlated column of `second`, and how much it is.

    A channel that falls where another one rises is another detector, so -0.9 is no match. Of equal
    ones it is the lower number. A column that is the same for all images has no correlation: it
    matches none, -1 and NaN.

    Args:
        first: ``(N, C)``, a row an image, finite.
        second: ``(N, D)`` of the same images.
    """
    one, other = _standardised(first), _standardised(second)
    varies = other.any(0)
    best = np.full(one.shape[1], -1, np.int64)
    correlations = np.full(one.shape[1], np.nan)
    if varies.any():
        products = np.where(varies, one.T @ other, -np.inf)
        known = one.any(0)
        best[known] = products.argmax(1)[known]
        correlations[known] = np.clip(products.max(1)[known], -1, 1)
    for array in (best, correlations):
        array.setflags(write=False)
    return best, correlations


def _standardised(rows: Rows) -> Floats:
    """Centre the columns and scale them to length 1; a constant column becomes zeros."""
    wide = rows.astype(np.float64)
    wide -= wide[0].copy()  # so that a column of equal numbers is 0, and not off by a rounding
    wide -= wide.mean(0)
    wide /= np.abs(wide).max(0, initial=0) + (wide == 0).all(0)
    lengths = np.sqrt(np.einsum("ij,ij->j", wide, wide))
    standardised: Floats = wide / np.where(lengths == 0, 1, lengths)
    return standardised
