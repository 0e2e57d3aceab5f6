"""Keep the k strongest images of each channel, and merge two such lists into one.

Of equal values the earlier image comes first, and within an image the earlier cell, row by row.
Pictures that are equal to the pixel count once, as the first of them.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

NOBODY = -1
"""Index where there is no image: the channel has fewer than the list is long."""

TOP = 9
"""Number of images that an atlas keeps of each channel unless told otherwise."""


class TopK:
    """Running k largest values of each of C channels, with the image and the cell of each.

    Attributes:
        values: float32, ``(C, k)``, largest first; -inf where there is none.
        indices: int64, ``(C, k)``, of the images among all.
        cells: int32, ``(C, k, 2)``, row and column.
        floor: what is no larger need not be in the lists, ``(C,)``: other lists, which these are
            to be merged with, are full of what is no less. Nothing by default.
    """

    def __init__(self, channels: int, k: int, floor: NDArray[np.float32] | None = None) -> None:
        self.values: NDArray[np.float32] = np.full((channels, k), -np.inf, np.float32)
        self.indices: NDArray[np.int64] = np.full((channels, k), NOBODY, np.int64)
        self.cells: NDArray[np.int32] = np.full((channels, k, 2), NOBODY, np.int32)
        self.floor = np.full(channels, -np.inf, np.float32) if floor is None else floor

    @property
    def k(self) -> int:
        """Number of images kept of each channel."""
        return int(self.values.shape[1])

    @property
    def least(self) -> NDArray[np.float32]:
        """Value that a later image has to exceed, ``(C,)``."""
        return np.maximum(self.values[:, -1], self.floor)

    def offer(
        self,
        rows: slice,
        values: NDArray[np.float32],
        indices: NDArray[np.int64],
        cells: NDArray[np.int32],
    ) -> None:
        """Take in what later images give the channels of `rows`.

        Args:
            rows: which channels, c of them.
            values: ``(N, c)``, -inf for what need not be looked at.
            indices: ``(N,)``, ascending, and after those of all images before.
            cells: ``(N, c, 2)``.
        """
        changed = np.flatnonzero((values > self.least[rows]).any(axis=0))
        if changed.size:
            self._keep(changed, rows, values, indices, cells)

    def merge(self, other: "TopK", copies: Mapping[int, int]) -> None:
        """Take in another list over other images.

        Args:
            other: of the same channels, of any images before or after these.
            copies: for an image that equals another one, the index of the first of them.
        """
        both_values = np.concatenate([self.values, other.values], axis=1)
        both_places = np.concatenate([self.indices, other.indices], axis=1)
        both_cells = np.concatenate([self.cells, other.cells], axis=1)
        if copies:
            _drop_copies(both_values, both_places, copies)
        order = np.lexsort((both_places, -both_values), axis=1)[:, : self.k]
        self.values = np.take_along_axis(both_values, order, 1)
        self.indices = np.take_along_axis(both_places, order, 1)
        self.cells = np.ascontiguousarray(np.take_along_axis(both_cells, order[..., None], 1))

    def _keep(
        self,
        changed: NDArray[np.intp],
        rows: slice,
        values: NDArray[np.float32],
        indices: NDArray[np.int64],
        cells: NDArray[np.int32],
    ) -> None:
        """Put the new values among those of the channels of `rows` that they change."""
        channels, k = changed + rows.start, self.k
        both = np.concatenate([self.values[channels], values[:, changed].T], axis=1)
        order = np.argsort(-both, axis=1, kind="stable")[:, :k]  # the earlier first
        of_row = both.shape[1] * np.arange(len(both))[:, None]
        self.values[channels] = np.take(both, of_row + order)
        # What stays comes from the channel's own list, and what is new from its place in the batch.
        is_new = order >= k
        stays = np.minimum(order, k - 1) + k * channels[:, None]
        image = order[is_new] - k
        channel = np.repeat(changed, is_new.sum(axis=1))
        new_cells = _pairs(cells)[image, channel]
        for kept, new in ((self.indices, indices[image]), (_pairs(self.cells), new_cells)):
            moved = np.take(kept, stays)
            moved[is_new] = new
            kept[channels] = moved


def _pairs(cells: NDArray[np.int32]) -> NDArray[np.int64]:
    """View rows and columns, ``(…, 2)``, as one number each, ``(…,)``, which move as one."""
    pairs: NDArray[np.int64] = cells.view(np.int64)[..., 0]
    return pairs


def _drop_copies(
    values: NDArray[np.float32], indices: NDArray[np.int64], copies: Mapping[int, int]
) -> None:
    """Keep the first of equal pictures in one list, and drop the others from it."""
    known = np.array(sorted(copies))
    first = np.array([copies[index] for index in known.tolist()])
    at = np.minimum(np.searchsorted(known, indices), known.size - 1)
    is_copy = known[at] == indices
    as_first = np.where(is_copy, first[at], indices)
    for row in np.flatnonzero(is_copy.any(axis=1)):
        for column in np.flatnonzero(is_copy[row]):
            same = (as_first[row] == as_first[row, column]) & (values[row] > -np.inf)
            better = same & (indices[row] < indices[row, column])
            if better.any():
                values[row, column], as_first[row, column] = -np.inf, NOBODY
    indices[:] = as_first
