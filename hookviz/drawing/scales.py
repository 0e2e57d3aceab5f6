"""Quantise values to colour levels, and say what the colours mean.

A *level* is an index into a palette of 256 colours: 0 to `LEVELS` − 1 run through the colormap,
and the rest are reserved. Pure NumPy: `hookviz.drawing.palette` has the colours themselves.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.colormaps import INF_LEVEL, LEVELS, NAN_LEVEL
from hookviz.drawing.statistics import ChannelStats, Floats, Levels
from hookviz.errors import HookVizError, SettingError, one_of, shorten
from hookviz.language.saying import mark, say

PERCENTILES = (1, 99)

SCALES = {
    mark("layer"): mark("from the layer's lowest to its highest value"),
    mark("channel"): mark("from each channel's own lowest to its own highest value"),
    mark("symmetric"): mark("the same distance below and above zero for the whole layer"),
    mark("percentile"): mark("from the layer's 1st to its 99th percentile"),
    mark("balanced"): mark(
        "from zero to the 99th percentile of |x|, both ways where values are below zero"
    ),
}
"""The scale policies, and what their colours span."""


@dataclass(frozen=True, eq=False, slots=True)
class Limits:
    """Values that the two end colours stand for, per channel.

    Attributes:
        scale: the policy, one of `SCALES`.
        low, high: float64, ``(C,)``, finite; equal where a channel has one value everywhere.
        clipped: whether there are values outside.
    """

    scale: str
    low: Floats
    high: Floats
    clipped: bool = False


def limits(values: NDArray[np.float32], stats: ChannelStats, scale: str = "layer") -> Limits:
    """Return the limits of `values`, float32 ``(C, H, W)`` with these `stats`, under a policy.

    All policies but ``"channel"`` look at the whole layer, whichever channels are shown later, so
    a top-k selection keeps its colours. Percentiles are values that occur (no interpolation).
    Where both are the same number, as in a layer that is 99 % zeros, they would hide everything
    else: then the limits are the lowest and highest value.

    Raises:
        SettingError: `scale` is not in `SCALES`.
    """
    one_of(say("scale"), scale, SCALES)
    if scale == "channel":
        return Limits(scale, np.nan_to_num(stats.minimum), np.nan_to_num(stats.maximum))
    lowest, highest = np.nan_to_num(stats.lowest), np.nan_to_num(stats.highest)
    low, high, clipped = float(lowest), float(highest), False
    if scale == "symmetric":
        high = max(abs(low), abs(high)) or 1.0  # all zeros: any span puts them in the middle
        low = -high
    elif scale == "percentile":
        first, last = _percentiles(values, stats)
        if first < last:
            low, high, clipped = first, last, first > lowest or last < highest
    elif scale == "balanced":
        largest = max(abs(low), abs(high))
        high = _percentile_of_sizes(values, stats) or largest or 1.0
        low, clipped = (-high if low < 0 else 0.0), high < largest
    return Limits(scale, np.full(len(stats), low), np.full(len(stats), high), clipped)


def held(limits: Limits | tuple[float, float], stats: ChannelStats) -> Limits:
    """Return the limits of another picture, or ``(low, high)``, for values with these `stats`.

    Raises:
        HookVizError: they are of another number of channels.
        SettingError: they are not two finite numbers, the lower one first.
    """
    if not isinstance(limits, Limits):
        low, high = _ends(limits)
        limits = Limits("layer", np.full(len(stats), low), np.full(len(stats), high))
    if len(limits.low) != len(stats):
        raise HookVizError(
            say(
                "limits= are of {limit_count} channels, and these values have {channel_count}. "
                "Take those of a grid of the same layer.",
                limit_count=len(limits.low),
                channel_count=len(stats),
            )
        )
    lowest, highest = np.nan_to_num(stats.minimum), np.nan_to_num(stats.maximum)
    outside = bool((lowest < limits.low).any() or (highest > limits.high).any())
    return replace(limits, clipped=outside)


def _ends(limits: tuple[float, float]) -> tuple[float, float]:
    """Return two numbers as floats, or refuse what is no range.

    Raises:
        SettingError: it is not two finite numbers, the lower one first.
    """
    try:
        low, high = (float(end) for end in limits if not isinstance(end, str | bool))
    except (TypeError, ValueError):
        low = high = 0.0
    if -np.inf < low < high < np.inf:
        return low, high
    raise SettingError(
        say(
            "limits={limits} is not (low, high), two finite numbers with the lower one first, "
            "such as (-5, 5).",
            limits=shorten(repr(limits)),
        )
    )


def quantise(values: NDArray[np.float32], low: Floats, high: Floats) -> Levels:
    """Quantise values to levels, uint8, ``(N, H, W)``; `low` and `high` are per channel, ``(N,)``.

    The range is cut into `LEVELS` equal parts, as matplotlib does: `low` is level 0, `high` and
    above are the last one, below `low` is 0. A channel whose `low` and `high` are equal gets level
    0 everywhere, so a dead channel is never bright. NaN and ±∞ get levels of their own.
    """
    span = high - low
    varying = span > 0
    # float32 is quicker, and exact enough as long as neither the span nor its inverse overflows
    gentle = not varying.any() or (span[varying].min() > 1e-30 and span.max() < 1e38)
    kind = np.float32 if gentle else np.float64
    factor = np.divide(LEVELS, span, out=np.zeros_like(span), where=varying).astype(kind)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        scaled = np.subtract(values, low.astype(kind)[:, None, None], dtype=kind)
        scaled *= factor[:, None, None]
        np.clip(scaled, 0, LEVELS - 1, out=scaled)
    finite = np.isfinite(values)
    spoilt = not finite.all()
    if spoilt:
        scaled[~finite] = 0
    levels: Levels = scaled.astype(np.uint8)
    if spoilt:
        levels[np.isnan(values)] = NAN_LEVEL
        levels[np.isinf(values)] = INF_LEVEL
    return levels


def _percentile_of_sizes(values: NDArray[np.float32], stats: ChannelStats) -> float:
    """Return the 99th percentile of finite |x|: the nearest rank above; 0 without any."""
    sizes = np.abs(values.reshape(-1))
    if stats.nan.any() or stats.inf.any():
        sizes = sizes[np.isfinite(sizes)]
    if not len(sizes):
        return 0.0
    rank = -(-(len(sizes) - 1) * PERCENTILES[1] // 100)
    return float(np.partition(sizes, rank)[rank])


def _percentiles(values: NDArray[np.float32], stats: ChannelStats) -> tuple[float, float]:
    """Return the 1st and 99th percentile of finite values: the nearest ranks outside of them."""
    flat = values.reshape(-1)
    if stats.nan.any() or stats.inf.any():
        flat = flat[np.isfinite(flat)]
    if not len(flat):
        return 0.0, 0.0
    last = len(flat) - 1
    below = last * PERCENTILES[0] // 100
    above = -(-last * PERCENTILES[1] // 100)
    # After a ReLU the lowest value is 0, many times over, and partitioning around equal values is
    # slow. Otherwise one rank at a time takes an eighth of the time of both in one call.
    first = stats.lowest
    if np.count_nonzero(flat == np.float32(first)) <= below:
        first = float(np.partition(flat, below)[below])
    return first, float(np.partition(flat, above)[above])
