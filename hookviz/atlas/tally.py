"""Accumulate top-k lists, histograms and sums over images, as partial results that can be merged.

A shard of the images gives one `Tally`; their sum, in order of the shards, is the atlas. Every
engine that works on shards needs no more than this.

`TopK`: of equal values the earlier image comes first, and within an image the earlier cell, row by
row. Pictures that are equal to the pixel count once, as the first of them.

`Histograms` need no range beforehand. A channel's bins are 64 of one width, half of them below 0.
The width is the least power of two at which every value so far has a bin; where a larger value
comes, bins are joined in pairs. So the result depends on the values alone, not on their order, and
two histograms have a sum.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

NOBODY = -1
"""Index where there is no image: the channel has fewer than the list is long."""

TOP = 9
"""Number of images that an atlas keeps of each channel unless told otherwise."""

BINS = 64
"""Bins of each channel."""

SMALLEST = -64
"""Least exponent of a bin's width; that of a channel that was always 0."""

_HALF = BINS // 2
_HALF_EXPONENT = 5  # 2⁵ bins above 0
MOST_REASONS = 1000
"""Number of left-out images that are named with their reasons; all are counted."""


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


@dataclass(frozen=True, eq=False, slots=True)
class LayerBatch:
    """Reduced output of one layer for N images.

    Attributes:
        first: row of its first channel among all.
        best: each channel's largest value, float32 ``(N, C)``; -inf where no cell has a number.
        cells: row and column of it, int32 ``(N, C, 2)``, for those that exceed what the pass was
            told to exceed; -1 for the others.
        sums: of all finite values, float64 ``(N, C)``.
        numbers: how many values each map has.
        not_finite: of them NaN or infinite, int64 ``(C,)``.
        sample: values of up to 9 cells of each map, evenly spread, float32 ``(C, N · cells)``.
    """

    first: int
    best: NDArray[np.float32]
    cells: NDArray[np.int32]
    sums: NDArray[np.float64]
    numbers: int
    not_finite: NDArray[np.int64]
    sample: NDArray[np.float32]

    @property
    def rows(self) -> slice:
        """Rows of its channels among all."""
        return slice(self.first, self.first + self.best.shape[1])


@dataclass(eq=False)
class Tally:
    """Running k strongest images of each of C channels, and sums over all images.

    Attributes:
        top: the strongest.
        histograms: of sampled cells.
        sums: of all finite values, float64 ``(C,)``.
        numbers: how many values that were, int64 ``(C,)``.
        not_finite: how many values were NaN or infinite, int64 ``(C,)``.
        zeros: how many of the sampled cells are 0, int64 ``(C,)``.
        maxima: sum of each image's largest value, float64 ``(C,)``.
        images: how many images each channel had a largest value of, int64 ``(C,)``.
        strongest: for how many images the channel's was the largest of its layer, int64 ``(C,)``.
        class_maxima: as `maxima` for the images of each class, float64 ``(classes, C)``.
        class_images: images of each class, int64 ``(classes,)``.
        tallied: how many images.
        digests: by the digest of each different picture, index of the first image that shows it.
        repeated: how many images show a picture that another one shows.
        left_out: why images were left out, by their indices; the first `MOST_REASONS` of them.
        left_out_count: how many were.
    """

    top: TopK
    histograms: Histograms
    sums: NDArray[np.float64]
    numbers: NDArray[np.int64]
    not_finite: NDArray[np.int64]
    zeros: NDArray[np.int64]
    maxima: NDArray[np.float64]
    images: NDArray[np.int64]
    strongest: NDArray[np.int64]
    class_maxima: NDArray[np.float64]
    class_images: NDArray[np.int64]
    tallied: int = 0
    repeated: int = 0
    left_out_count: int = 0
    digests: dict[bytes, int] = field(default_factory=dict)
    left_out: dict[int, str] = field(default_factory=dict)

    @classmethod
    def empty(
        cls, channels: int, k: int, classes: int, floor: NDArray[np.float32] | None = None
    ) -> "Tally":
        """Make the tally of no images, whose lists leave out what does not exceed `floor`."""
        return cls(
            TopK(channels, k, floor),
            Histograms(channels),
            np.zeros(channels, np.float64),
            np.zeros(channels, np.int64),
            np.zeros(channels, np.int64),
            np.zeros(channels, np.int64),
            np.zeros(channels, np.float64),
            np.zeros(channels, np.int64),
            np.zeros(channels, np.int64),
            np.zeros((classes, channels), np.float64),
            np.zeros(classes, np.int64),
        )

    def add(
        self,
        layers: Iterable[LayerBatch],
        indices: Sequence[int],
        digests: Sequence[bytes],
        classes: Sequence[int],
    ) -> None:
        """Take in what one pass made of N images.

        Args:
            layers: of the pass.
            indices: of the images among all, ascending, and after all that were added before.
            digests: of the pictures.
            classes: of each image; -1 for none.
        """
        at = np.array(indices, np.int64)
        is_first = np.array([self._is_first(*pair) for pair in zip(digests, indices, strict=True)])
        of_class = np.array(classes, np.int64)
        known = of_class >= 0
        self.tallied += len(indices)
        self.repeated += int((~is_first).sum())
        np.add.at(self.class_images, of_class[known], 1)
        for together in _neighbours(layers):
            self._add_neighbours(together, is_first, at, of_class)

    def _add_neighbours(
        self,
        layers: list[LayerBatch],
        is_first: NDArray[np.bool_],
        indices: NDArray[np.int64],
        of_class: NDArray[np.int64],
    ) -> None:
        """Take in layers whose rows follow on one another: all of a batch at once, mostly.

        Joined first, since there are dozens of layers, and of each some have few values only.
        """
        rows = slice(layers[0].first, layers[-1].rows.stop)
        best = np.concatenate([layer.best for layer in layers], axis=1)
        cells = np.concatenate([layer.cells for layer in layers], axis=1)
        offered = best
        if not is_first.all():
            offered = np.where(is_first[:, None], best, np.float32(-np.inf))
        self.top.offer(rows, offered, indices, cells)
        finite = np.isfinite(best)
        maxima = np.where(finite, best, 0).astype(np.float64)
        known = of_class >= 0
        self.images[rows] += finite.sum(axis=0)
        if known.any():
            np.add.at(self.class_maxima[:, rows], of_class[known], maxima[known])
        self.histograms.add(rows, *(layer.sample for layer in layers))
        for layer in layers:  # sums by themselves: NumPy rounds those of one column in another way
            own = layer.rows
            here = slice(own.start - rows.start, own.stop - rows.start)
            self.sums[own] += layer.sums.sum(axis=0)
            self.maxima[own] += maxima[:, here].sum(axis=0)
            self.not_finite[own] += layer.not_finite
            self.numbers[own] += layer.numbers * len(indices) - layer.not_finite
            is_zero = layer.sample == 0
            if np.count_nonzero(is_zero):
                self.zeros[own] += is_zero.sum(axis=1)
            if layer.best.size:
                strongest = layer.best.argmax(axis=1)[finite[:, here].any(axis=1)]
                np.add.at(self.strongest[own], strongest, 1)

    def leave_out(self, index: int, reason: str) -> None:
        """Count an image that can't be read, or that the network can't take."""
        self.left_out_count += 1
        if len(self.left_out) < MOST_REASONS:
            self.left_out[index] = reason

    def merge(self, other: "Tally") -> None:
        """Take in the tally of other images."""
        copies: dict[int, int] = {}
        for digest, index in other.digests.items():
            known = self.digests.setdefault(digest, index)
            if known != index:
                copies[max(known, index)] = min(known, index)
                self.digests[digest] = min(known, index)
        self.repeated += other.repeated + len(copies)
        self.top.merge(other.top, copies)
        self.histograms.merge(other.histograms)
        for name in SUMS:
            total = getattr(self, name)
            total += getattr(other, name)
        self.tallied += other.tallied
        self.left_out_count += other.left_out_count
        reasons = sorted({**self.left_out, **other.left_out}.items())
        self.left_out = dict(reasons[:MOST_REASONS])

    def _is_first(self, digest: bytes, index: int) -> bool:
        return self.digests.setdefault(digest, index) == index


def _neighbours(layers: Iterable[LayerBatch]) -> Iterator[list[LayerBatch]]:
    """Yield runs of layers, each of which begins at the row where the one before it ends."""
    run: list[LayerBatch] = []
    for layer in layers:
        if run and layer.first != run[-1].rows.stop:
            yield run
            run = []
        run.append(layer)
    if run:
        yield run


SUMS = (
    *("sums", "numbers", "not_finite", "zeros", "maxima", "images", "strongest"),
    *("class_maxima", "class_images"),
)
"""Attributes of a `Tally` that simply add up."""
