"""Compute statistics of each channel of an activation, and sort channels by them; count histograms.

Pure NumPy. An activation is ``(C, H, W)``: C channels, each a map of H × W cells. A *cell* is one
value of a map; a *tile* is one map in the mosaic, its cells drawn as squares of whole pixels.
"""

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hookviz.errors import HookVizError, SettingError, one_of, shorten
from hookviz.language.saying import mark, say

Floats = NDArray[np.float64]
Levels = NDArray[np.uint8]

SORTS = {
    mark("index"): mark("in the layer's own order"),
    mark("max"): mark("highest maximum first"),
    mark("mean"): mark("highest mean first"),
    mark("variance"): mark("highest variance first"),
    mark("zeros"): mark("largest share of zeros first"),
}
"""What channels can be sorted by, and how a person says it."""

CHOSEN = "chosen"
"""`Grid.sort` of a grid whose channels a person listed."""

_CHUNK = 1 << 15  # values at a time: their float64 copy, 256 kB, stays in the processor's cache

BINS = 48
"""Bins of a histogram, of equal width from the lowest to the highest value."""


@dataclass(frozen=True, eq=False, slots=True)
class ChannelStats:
    """Statistics per channel over its finite values; NaN where a channel has none.

    Attributes:
        minimum, maximum, mean: float64, ``(C,)``.
        variance: float64, ``(C,)``, the population's: the mean squared distance from the mean.
        zeros: float64, ``(C,)``, the share of values that are exactly 0, from 0 to 1.
        nan: ``(C,)``, how many values are NaN.
        inf: ``(C,)``, how many are +∞ or −∞.
    """

    minimum: Floats
    maximum: Floats
    mean: Floats
    variance: Floats
    zeros: Floats
    nan: NDArray[np.intp]
    inf: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def lowest(self) -> float:
        """Lowest finite value of the layer; NaN where it has none."""
        return float(np.fmin.reduce(self.minimum))

    @property
    def highest(self) -> float:
        """Highest finite value of the layer; NaN where it has none."""
        return float(np.fmax.reduce(self.maximum))


def _check_shape(shape: tuple[int, ...]) -> None:
    """Refuse a shape that is not ``(C, H, W)`` with something in it.

    Raises:
        HookVizError: it is not; the message says what a grid needs and what to do.
    """
    if len(shape) == 3 and all(shape):
        return
    hint = ""
    if len(shape) == 4:
        hint = say(" Take one image of the batch first, for example values[0], or of a volume's")
        hint += say(" (C, D, H, W) a slice with depth=.")
    elif len(shape) == 2:
        hint = say(" A single map becomes one channel with values[None].")
    elif len(shape) == 3:
        hint = say(" This one is empty.")
    raise HookVizError(
        say("A grid needs (C, H, W); the shape given is {shape}.{hint}", shape=shape, hint=hint)
    )


def channel_stats(values: NDArray[np.float32]) -> ChannelStats:
    """Compute the statistics per channel of float32 `values`, ``(C, H, W)``.

    Sums run in float64 and the variance in two passes (distance from the mean, then squares), so
    a large mean doesn't drown a small variance.

    Raises:
        HookVizError: `values` is not ``(C, H, W)`` or is empty.
    """
    _check_shape(values.shape)
    rows = np.ascontiguousarray(values, dtype=np.float32).reshape(len(values), -1)
    count, cells = rows.shape
    with np.errstate(invalid="ignore"):
        minimum = rows.min(axis=1).astype(np.float64)
        maximum = rows.max(axis=1).astype(np.float64)
    mean, variance, zeros = np.empty(count), np.empty(count), np.zeros(count)
    nan, inf = np.zeros(count, np.intp), np.zeros(count, np.intp)

    step = max(1, _CHUNK // cells)
    buffer = np.empty((min(step, count), cells))
    for start in range(0, count, step):
        chunk = rows[start : start + step]
        wide = buffer[: len(chunk)]
        with np.errstate(invalid="ignore"):  # channels with NaN or ±∞ are done again below
            wide[...] = chunk
            mean[start : start + step] = wide.mean(axis=1)
            wide -= mean[start : start + step, None]
            # no BLAS: it would wake other threads for so little, and wait on a busy machine
            variance[start : start + step] = np.einsum("ij,ij->i", wide, wide) / cells
        zeros[start : start + step] = np.count_nonzero(chunk == 0, axis=1) / cells

    for channel in np.flatnonzero(~np.isfinite(minimum) | ~np.isfinite(maximum)):
        row = rows[channel]
        nan[channel] = np.isnan(row).sum()
        inf[channel] = np.isinf(row).sum()
        finite = row[np.isfinite(row)].astype(np.float64)
        summary: tuple[float, ...] = (np.nan,) * 5
        if len(finite):
            summary = (
                finite.min(),
                finite.max(),
                finite.mean(),
                finite.var(),
                (finite == 0).mean(),
            )
        for statistic, number in zip(
            (minimum, maximum, mean, variance, zeros), summary, strict=True
        ):
            statistic[channel] = number
    return ChannelStats(minimum, maximum, mean, variance, zeros, nan, inf)


def strongest_cells(values: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return where each map of `values`, ``(C, H, W)``, is highest, as row × W + column, ``(C,)``.

    Among its finite values, of equal ones the first; 0 where none is finite.
    """
    rows = values.reshape(len(values), -1)
    found: NDArray[np.intp] = rows.argmax(axis=1)
    for channel in np.flatnonzero(~np.isfinite(rows[np.arange(len(rows)), found])):
        found[channel] = np.where(np.isfinite(rows[channel]), rows[channel], -np.inf).argmax()
    return found


def order(stats: ChannelStats, sort: str = "index", top: int | None = None) -> NDArray[np.intp]:
    """Return the channel numbers to show, in order, intp, ``(N,)``.

    All but ``"index"`` put the highest first, equal ones by channel number, and channels without
    any finite value last. Only the first `top` are kept, or all where there are fewer.

    Raises:
        SettingError: `sort` is not in `SORTS`, or `top` is not a whole number above 0.
    """
    one_of(say("sort order"), sort, SORTS)
    if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 1):
        raise SettingError(
            say(
                "top={top!r} is not a whole number above 0; this layer has {channel_count} "
                "channels, and top=None shows them all.",
                top=top,
                channel_count=len(stats),
            )
        )
    if sort == "index":
        return np.arange(len(stats))[:top]
    key = {
        "max": stats.maximum,
        "mean": stats.mean,
        "variance": stats.variance,
        "zeros": stats.zeros,
    }[sort]
    return np.argsort(-key, kind="stable")[:top]  # argsort puts NaN last


def chosen(
    channels: Iterable[int], count: int, sort: str = "index", top: int | None = None
) -> NDArray[np.intp]:
    """Return the channel numbers that a person lists, as listed, intp, ``(N,)``.

    Raises:
        SettingError: they are no whole numbers, none, not below `count` or repeated, or `sort` or
            `top` chooses channels too.
    """
    if sort != "index" or top is not None:
        raise SettingError(
            say("channels= lists the channels in their order; leave out sort= and top=, or it.")
        )
    try:
        given = [-1 if isinstance(each, bool) else operator.index(each) for each in channels]
    except TypeError:
        given = []
    if not given or not all(0 <= each < count for each in given):
        raise SettingError(
            say(
                "channels={channels} is not a list of channel numbers from 0 to {last}; [0] is.",
                channels=shorten(repr(channels)),
                last=count - 1,
            )
        )
    if len(set(given)) < len(given):
        raise SettingError(
            say(
                "channels={channels} has a channel twice; list each one once.",
                channels=shorten(repr(channels)),
            )
        )
    return np.array(given, np.intp)


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

    Without any finite value, and where all are the same, the bins are 1 wide in all, as NumPy's;
    of one value beyond 10^11 they are as wide as float64 can tell apart.
    """
    finite = values[np.isfinite(values)].astype(np.float64)
    ends = None
    if finite.size and finite.min() == finite.max():
        wider = max(0.5, abs(float(finite[0])) * 2**-40)
        ends = float(finite[0]) - wider, float(finite[0]) + wider
    counts, edges = np.histogram(finite, BINS, ends)
    return Histogram(counts.astype(np.int64), edges, values.size - finite.size)
