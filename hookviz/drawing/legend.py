"""Say what the colours of a grid mean, in words and numbers."""

from math import floor, isfinite, log10

import numpy as np

from hookviz.drawing.colormaps import INF_WORD, NAN_WORD, Colormap
from hookviz.drawing.scales import Limits
from hookviz.drawing.statistics import ChannelStats
from hookviz.language.saying import say, say_count
from hookviz.wording import number


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
    return say("{meaning}.", meaning=say("; ").join([meaning, *oddities(stats)]))


def _end_word(value: float, low: float, high: float, colormap: Colormap) -> str:
    """Return the word for the colour of a value at an end or in the middle, else nothing."""
    if value == low:
        return colormap.low
    if value == high:
        return colormap.high
    return colormap.middle if value == low / 2 + high / 2 else ""


def oddities(stats: ChannelStats) -> tuple[str, ...]:
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
