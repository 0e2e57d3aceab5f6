"""Compare two activations of one shape: correlation, difference, cosine and rank correlation."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.wording import times

Floats = NDArray[np.float64]

_CHUNK = 1 << 16  # values at a time: their float64 copies stay in the processor's cache


@dataclass(frozen=True, eq=False, slots=True)
class ChannelComparison:
    """Similarity of each channel of A to the channel of B that has the same number.

    A channel with NaN in it has NaN for all three numbers. One with an infinite value has NaN for
    correlation and cosine; its difference is infinite, or NaN where both are infinite in one cell.

    Attributes:
        correlation: Pearson's, float64 ``(C,)``, from -1 to 1, over the cells of a map; NaN where
            either map has one value everywhere, since then there is nothing to vary together.
        mean_absolute_difference: float64 ``(C,)``, the mean of |b - a| over the cells, in the
            units of the activation.
        cosine: of the angle between the two maps as vectors, float64 ``(C,)``, from -1 to 1; NaN
            where either map is zero everywhere, since that has no direction.
        most_changed: every channel's number, int64 ``(C,)``, the largest mean absolute difference
            first; equal ones by channel number. Channels where it is NaN stand before all others.
    """

    correlation: Floats = field(repr=False)
    mean_absolute_difference: Floats = field(repr=False)
    cosine: Floats = field(repr=False)
    most_changed: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.correlation)

    @property
    def means(self) -> tuple[float, float, float]:
        """Correlation, mean absolute difference and cosine, each the mean over the channels.

        Channels that have no such number are left out; NaN where none has it.
        """
        correlation, difference, cosine = (
            float(numbers[~np.isnan(numbers)].mean()) if not np.isnan(numbers).all() else np.nan
            for numbers in (self.correlation, self.mean_absolute_difference, self.cosine)
        )
        return correlation, difference, cosine


def compare_maps(a: Tensor, b: Tensor) -> ChannelComparison:
    """Compare two activations of one shape, channel by channel.

    Correlation is ``Σ(a-ā)(b-b̄) / √(Σ(a-ā)² Σ(b-b̄)²)`` and cosine ``Σab / √(Σa² Σb²)``, over the
    cells of a channel, computed in float64.

    Args:
        a: real numbers, ``(C, H, W)``, or any other ``(C, …)``: sound, a volume, a vector.
        b: the same shape.

    Raises:
        HookVizError: the shapes differ, or there are no numbers in them, or complex ones.

    >>> from hookviz.comparing.channels import compare_maps
    >>> a = torch.arange(8.0).reshape(2, 2, 2)  # (C, H, W)
    >>> comparison = compare_maps(a, a * torch.tensor([2.0, -1.0])[:, None, None])
    >>> comparison.correlation.tolist(), comparison.most_changed.tolist()
    ([1.0, -1.0], [1, 0])
    """
    first, second = _rows(a, b)
    numbers = np.empty((3, len(first)))
    step = max(1, _CHUNK // first.shape[1])
    with np.errstate(all="ignore"):  # what is NaN or infinite comes out as NaN
        for start in range(0, len(first), step):
            part = slice(start, start + step)
            numbers[:, part] = _numbers(first[part], second[part])
    correlation, difference, cosine = numbers
    largest_first = np.where(np.isnan(difference), -np.inf, -difference)
    order = np.lexsort((~np.isnan(difference), largest_first)).astype(np.int64)
    for array in (correlation, difference, cosine, order):
        array.setflags(write=False)
    return ChannelComparison(correlation, difference, cosine, order)


def _rows(a: Tensor, b: Tensor) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    """Return both as NumPy arrays with a row for each channel, ``(C, cells)``."""
    if a.shape != b.shape:
        raise HookVizError(
            say(
                "Maps of {size_a} can't be compared with maps of {size_b} channel by channel: "
                "both have to have the same shape.",
                size_a=_size(a),
                size_b=_size(b),
            )
        )
    if not a.ndim or not a.numel():
        raise HookVizError(
            say("There are no channels to compare in a tensor of {size}.", size=_size(a))
        )
    if a.is_complex() or b.is_complex():
        raise HookVizError(say("Complex numbers are not compared; give their .abs() or .real."))
    first, second = (_real(maps).reshape(len(maps), -1).numpy() for maps in (a, b))
    return first, second


def _real(values: Tensor) -> Tensor:
    plain = values.detach().cpu()
    return plain if plain.element_size() > 2 and plain.is_floating_point() else plain.double()


def _numbers(first: NDArray[np.generic], second: NDArray[np.generic]) -> Floats:
    """Return correlation, mean absolute difference and cosine of a few channels, ``(3, C)``."""
    x, y = first.astype(np.float64), second.astype(np.float64)
    cosine = _cosine(x, y)
    difference = np.abs(y - x).mean(1)
    # by their values: the mean of equal numbers can be off by a rounding, and look like variation
    constant = (x.min(1) == x.max(1)) | (y.min(1) == y.max(1))
    correlation = _cosine(x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True))
    return np.stack([np.where(constant, np.nan, correlation), difference, cosine])


def _cosine(x: Floats, y: Floats) -> Floats:
    products = (np.einsum("ij,ij->i", *pair) for pair in ((x, y), (x, x), (y, y)))
    both, of_x, of_y = products
    cosine: Floats = np.clip(both / np.sqrt(of_x * of_y), -1, 1)
    return cosine


def _size(values: Tensor) -> str:
    return times(values.shape) or say("one number")


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
