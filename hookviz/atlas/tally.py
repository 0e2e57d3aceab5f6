"""Accumulate what is kept of the images so far, as partial results that can be merged.

A shard of the images gives one; their sum, in order of the shards, is the atlas. Every engine that
works on shards needs no more than this.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hookviz.atlas.histograms import Histograms
from hookviz.atlas.top_k import TopK

MOST_REASONS = 1000
"""Number of left-out images that are named with their reasons; all are counted."""


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
