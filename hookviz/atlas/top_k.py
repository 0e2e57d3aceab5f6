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
    """

    def __init__(self, channels: int, k: int) -> None:
        self.values: NDArray[np.float32] = np.full((channels, k), -np.inf, np.float32)
        self.indices: NDArray[np.int64] = np.full((channels, k), NOBODY, np.int64)
        self.cells: NDArray[np.int32] = np.full((channels, k, 2), NOBODY, np.int32)

    @property
    def k(self) -> int:
        """Number of images kept of each channel."""
        return int(self.values.shape[1])

    @property
    def least(self) -> NDArray[np.float32]:
        """Value that a later image has to exceed, ``(C,)``."""
        return self.values[:, -1]

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
        if not changed.size:
            return
        channels = changed + rows.start
        of_each = np.broadcast_to(indices, (changed.size, indices.size))
        self._keep(channels, values[:, changed].T, of_each, cells[:, changed].transpose(1, 0, 2))

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
        self.cells = np.take_along_axis(both_cells, order[..., None], 1)

    def _keep(
        self,
        channels: NDArray[np.intp],
        values: NDArray[np.float32],
        indices: NDArray[np.int64],
        cells: NDArray[np.int32],
    ) -> None:
        all_values = np.concatenate([self.values[channels], values], axis=1)
        order = np.argsort(-all_values, axis=1, kind="stable")[:, : self.k]  # the earlier first
        self.values[channels] = np.take_along_axis(all_values, order, 1)
        every_place = np.concatenate([self.indices[channels], indices], axis=1)
        self.indices[channels] = np.take_along_axis(every_place, order, 1)
        every_cell = np.concatenate([self.cells[channels], cells], axis=1)
        self.cells[channels] = np.take_along_axis(every_cell, order[..., None], 1)


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
