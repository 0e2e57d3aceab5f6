"""Choose the values of the end colours, and say in words and numbers what the colours mean."""

from dataclasses import dataclass, replace
from math import floor, isfinite, log10

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.colormaps import INF_WORD, NAN_WORD, Colormap
from hookviz.drawing.statistics import ChannelStats, Floats
from hookviz.errors import HookVizError, SettingError, one_of, shorten
from hookviz.language.saying import mark, say, say_count
from hookviz.wording import number

_PERCENTILES = (1, 99)

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


def limits_for(limits: Limits | tuple[float, float], stats: ChannelStats) -> Limits:
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
    """Return two numbers as floats, or refuse them.

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


def _percentile_of_sizes(values: NDArray[np.float32], stats: ChannelStats) -> float:
    """Return the 99th percentile of finite |x|: the nearest rank above; 0 without any."""
    sizes = np.abs(values.reshape(-1))
    if stats.nan.any() or stats.inf.any():
        sizes = sizes[np.isfinite(sizes)]
    if not len(sizes):
        return 0.0
    rank = -(-(len(sizes) - 1) * _PERCENTILES[1] // 100)
    return float(np.partition(sizes, rank)[rank])


def _percentiles(values: NDArray[np.float32], stats: ChannelStats) -> tuple[float, float]:
    """Return the 1st and 99th percentile of finite values: the nearest ranks outside of them."""
    flat = values.reshape(-1)
    if stats.nan.any() or stats.inf.any():
        flat = flat[np.isfinite(flat)]
    if not len(flat):
        return 0.0, 0.0
    last = len(flat) - 1
    below = last * _PERCENTILES[0] // 100
    above = -(-last * _PERCENTILES[1] // 100)
    # After a ReLU the lowest value is 0, many times over, and partitioning around equal values is
    # slow. Otherwise one rank at a time takes an eighth of the time of both in one call.
    first = stats.lowest
    if np.count_nonzero(flat == np.float32(first)) <= below:
        first = float(np.partition(flat, below)[below])
    return first, float(np.partition(flat, above)[above])


def legend(limits: Limits, stats: ChannelStats, colormap: Colormap) -> str:
    """Say in one sentence for a student what the colours mean, in real numbers."""
    low, high = float(limits.low[0]), float(limits.high[0])
    least, most = stats.lowest, stats.highest
    # a diverging colormap invites the reading that its middle is zero
    halfway = number(low / 2 + high / 2)
    through = (
        say("through {colour} ({value}) ", colour=say(colormap.middle), value=halfway)
        if colormap.diverging
        else ""
    )
    beyond = say("; values beyond take the end colours") if limits.clipped else ""
    if not isfinite(least):
        meaning = say("This layer has no finite value")
    elif least == most and (word := _end_word(most, low, high, colormap)):
        meaning = say(
            "Every value of this layer is {value}, drawn in {colour}",
            value=number(most),
            colour=say(word),
        )
    elif limits.scale == "channel" and len(stats) > 1:
        meaning = say(
            "Each channel has its own scale, {low_colour} at its lowest and {high_colour} at its "
            "highest value, so compare shapes between channels, not brightness",
            low_colour=say(colormap.low),
            high_colour=say(colormap.high),
        )
        if np.any(stats.minimum == stats.maximum):
            meaning += say(
                "; a channel with one value everywhere is {low_colour}",
                low_colour=say(colormap.low),
            )
    elif limits.scale == "symmetric":
        meaning = say(
            "{low_colour} is below zero, {zero_colour} is zero and {high_colour} is above, and the "
            "end colours stand for ±{end_value} in all channels of this layer",
            low_colour=say(colormap.low).capitalize(),
            zero_colour=say(colormap.middle),
            high_colour=say(colormap.high),
            end_value=number(high),
        )
        meaning += beyond
    elif limits.scale == "balanced":
        sides = (
            say(
                "{low_colour} is below zero, {zero_colour} is zero and {high_colour} is above, up "
                "to ±{end_value}",
                low_colour=say(colormap.low).capitalize(),
                zero_colour=say(colormap.middle),
                high_colour=say(colormap.high),
                end_value=number(high),
            )
            if low < 0
            else say(
                "{zero_colour} is zero and {high_colour} is {end_value}",
                zero_colour=say(colormap.low).capitalize(),
                high_colour=say(colormap.high),
                end_value=number(high),
            )
        )
        meaning = say(
            "{colours} in all channels of this layer{clipping}",
            colours=sides,
            clipping=say("; what is beyond, at most 1 % of all, takes the end colours")
            * limits.clipped,
        )
    elif limits.scale == "percentile" and limits.clipped:
        meaning = say(
            "Colours run from {low_colour} ({low_value}, the layer's 1st percentile) {middle}to "
            "{high_colour} ({high_value}, its 99th), and the values beyond, at most 2 % of all, "
            "take the end colours",
            low_colour=say(colormap.low),
            low_value=number(low),
            middle=through,
            high_colour=say(colormap.high),
            high_value=number(high),
        )
    else:
        meaning = say(
            "Colours run from {low_colour} ({low_value}) {middle}to {high_colour} ({high_value}), "
            "the same for all channels of this layer",
            low_colour=say(colormap.low),
            low_value=number(low),
            middle=through,
            high_colour=say(colormap.high),
            high_value=number(high),
        )
        meaning += beyond
    return say("{meaning}.", meaning=say("; ").join([meaning, *_oddities(stats)]))


def _end_word(value: float, low: float, high: float, colormap: Colormap) -> str:
    """Return the word for the colour of a value at an end or in the middle, else nothing."""
    if value == low:
        return colormap.low
    if value == high:
        return colormap.high
    return colormap.middle if value == low / 2 + high / 2 else ""


def _oddities(stats: ChannelStats) -> tuple[str, ...]:
    """Count NaN and infinite values in words, with their colours; empty without any."""
    nan, inf = int(stats.nan.sum()), int(stats.inf.sum())
    said = []
    if nan:
        said.append(
            say_count(
                "{count:,} NaN value is {colour}",
                "{count:,} NaN values are {colour}",
                nan,
                colour=say(NAN_WORD),
            )
        )
    if inf:
        said.append(
            say_count(
                "{count:,} infinite value is {colour}",
                "{count:,} infinite values are {colour}",
                inf,
                colour=say(INF_WORD),
            )
        )
    return tuple(said)


def ticks(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """Return marks for a colour bar: (fraction of its length from the low end, label).

    Both ends with their values, and round numbers between them that keep clear of the ends.
    """
    if not low < high:
        return ((0.0, number(low)),)
    span = high - low
    if not isfinite(span) or span < 1e-300:
        return (0.0, number(low)), (1.0, number(high))
    exponent = floor(log10(span / 5))
    steps = (mantissa * 10.0**exponent for mantissa in (1, 2, 5, 10, 20))
    step = next(step for step in steps if span / step <= 5)
    marks = [(0.0, number(low))]
    for index in range(floor(low / step), floor(low / step) + 8):
        fraction = (index * step - low) / span
        if 0.16 <= fraction <= 0.84:
            marks.append((fraction, _round_number(index, step)))
    return (*marks, (1.0, number(high)))


def _round_number(index: int, step: float) -> str:
    """Compute ``index * step``, for a step of 1, 2 or 5 times a power of 10, no digits to spare."""
    value = index * step
    if value == 0 or not 1e-3 <= step < 1e6:
        return number(value)
    text = f"{abs(value):,.{max(0, -floor(log10(step) + 1e-9))}f}"
    return f"−{text}" if value < 0 else text
