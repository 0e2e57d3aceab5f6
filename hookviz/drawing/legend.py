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
        say("through {middle} ({halfway}) ", middle=say(colormap.middle), halfway=halfway)
        if colormap.diverging
        else ""
    )
    if not isfinite(least):
        meaning = say("This layer has no finite value")
    elif least == most:
        word = say(colormap.middle if limits.scale == "symmetric" and most == 0 else colormap.low)
        if limits.scale == "symmetric" and most != 0:
            word = say(colormap.high if most > 0 else colormap.low)
        meaning = say(
            "Every value of this layer is {most}, drawn in {word}", most=number(most), word=word
        )
    elif limits.scale == "channel" and len(stats) > 1:
        meaning = say(
            "Each channel has its own scale, {low} at its lowest and {high} at its "
            "highest value, so compare shapes between channels, not brightness",
            low=say(colormap.low),
            high=say(colormap.high),
        )
        if np.any(stats.minimum == stats.maximum):
            meaning += say("; a channel with one value everywhere is {low}", low=say(colormap.low))
    elif limits.scale == "symmetric":
        meaning = say(
            "{first} is below zero, {middle} is zero and {high} is above, and the "
            "end colours stand for ±{high_2} in all channels of this layer",
            first=say(colormap.low).capitalize(),
            middle=say(colormap.middle),
            high=say(colormap.high),
            high_2=number(high),
        )
    elif limits.scale == "balanced":
        sides = (
            say(
                "{first} is below zero, {middle} is zero and {high} is above, up to ±{high_2}",
                first=say(colormap.low).capitalize(),
                middle=say(colormap.middle),
                high=say(colormap.high),
                high_2=number(high),
            )
            if low < 0
            else say(
                "{first} is zero and {high} is {high_2}",
                first=say(colormap.low).capitalize(),
                high=say(colormap.high),
                high_2=number(high),
            )
        )
        beyond = say("; what is beyond, at most 1 % of all, takes the end colours")
        meaning = say(
            "{sides} in all channels of this layer{beyond}",
            sides=sides,
            beyond=beyond * limits.clipped,
        )
    elif limits.clipped:
        meaning = say(
            "Colours run from {low} ({low_2}, the layer's 1st percentile) {through}to "
            "{high} ({high_2}, its 99th), and the values beyond, at most 2 % of all, "
            "take the end colours",
            low=say(colormap.low),
            low_2=number(low),
            through=through,
            high=say(colormap.high),
            high_2=number(high),
        )
    else:
        meaning = say(
            "Colours run from {low} ({low_2}) {through}to {high} ({high_2}), the same "
            "for all channels of this layer",
            low=say(colormap.low),
            low_2=number(low),
            through=through,
            high=say(colormap.high),
            high_2=number(high),
        )
    return say("{meaning}.", meaning=say("; ").join([meaning, *oddities(stats)]))


def oddities(stats: ChannelStats) -> tuple[str, ...]:
    """Count NaN and infinite values in words, with their colours; empty without any."""
    nan, inf = int(stats.nan.sum()), int(stats.inf.sum())
    said = []
    if nan:
        said.append(
            say_count(
                "{nan:,} NaN value is {nan_word}",
                "{nan:,} NaN values are {nan_word}",
                nan,
                nan=nan,
                nan_word=say(NAN_WORD),
            )
        )
    if inf:
        said.append(
            say_count(
                "{inf:,} infinite value is {inf_word}",
                "{inf:,} infinite values are {inf_word}",
                inf,
                inf=inf,
                inf_word=say(INF_WORD),
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
