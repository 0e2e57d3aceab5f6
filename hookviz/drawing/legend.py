"""What the colours of a grid mean, in words and numbers."""

from math import floor, isfinite, log10

import numpy as np

from hookviz.drawing.colormaps import INF_WORD, NAN_WORD, Colormap
from hookviz.drawing.scales import Limits
from hookviz.drawing.statistics import ChannelStats
from hookviz.wording import number


def legend(limits: Limits, stats: ChannelStats, colormap: Colormap) -> str:
    """One sentence for a student: what the colours mean, in real numbers."""
    low, high = float(limits.low[0]), float(limits.high[0])
    least, most = stats.lowest, stats.highest
    # a diverging colormap invites the reading that its middle is zero
    halfway = number(low / 2 + high / 2)
    through = f"through {colormap.middle} ({halfway}) " if colormap.diverging else ""
    if not isfinite(least):
        meaning = "This layer has no finite value"
    elif least == most:
        word = colormap.middle if limits.scale == "symmetric" and most == 0 else colormap.low
        if limits.scale == "symmetric" and most != 0:
            word = colormap.high if most > 0 else colormap.low
        meaning = f"Every value of this layer is {number(most)}, drawn in {word}"
    elif limits.scale == "channel" and len(stats) > 1:
        meaning = (
            f"Each channel has its own scale, {colormap.low} at its lowest and {colormap.high} at "
            "its highest value, so compare shapes between channels, not brightness"
        )
        if np.any(stats.minimum == stats.maximum):
            meaning += f"; a channel with one value everywhere is {colormap.low}"
    elif limits.scale == "symmetric":
        meaning = (
            f"{colormap.low.capitalize()} is below zero, {colormap.middle} is zero and "
            f"{colormap.high} is above, and the end colours stand for ±{number(high)} in all "
            "channels of this layer"
        )
    elif limits.scale == "balanced":
        sides = (
            f"{colormap.low.capitalize()} is below zero, {colormap.middle} is zero and "
            f"{colormap.high} is above, up to ±{number(high)}"
            if low < 0
            else f"{colormap.low.capitalize()} is zero and {colormap.high} is {number(high)}"
        )
        beyond = "; what is beyond, at most 1 % of all, takes the end colours"
        meaning = f"{sides} in all channels of this layer{beyond * limits.clipped}"
    elif limits.clipped:
        meaning = (
            f"Colours run from {colormap.low} ({number(low)}, the layer's 1st percentile) "
            f"{through}to {colormap.high} ({number(high)}, its 99th), and the values "
            "beyond, at most 2 % of all, take the end colours"
        )
    else:
        meaning = (
            f"Colours run from {colormap.low} ({number(low)}) {through}to {colormap.high} "
            f"({number(high)}), the same for all channels of this layer"
        )
    return "; ".join([meaning, *oddities(stats)]) + "."


def oddities(stats: ChannelStats) -> tuple[str, ...]:
    """How many values are NaN and how many infinite, with their colours; empty without any."""
    nan, inf = int(stats.nan.sum()), int(stats.inf.sum())
    said = []
    if nan:
        said.append(f"{nan:,} NaN value{'s are' if nan > 1 else ' is'} {NAN_WORD}")
    if inf:
        said.append(f"{inf:,} infinite value{'s are' if inf > 1 else ' is'} {INF_WORD}")
    return tuple(said)


def ticks(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """Marks for a colour bar: (fraction of its length from the low end, label).

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
    """``index * step``, for a step of 1, 2 or 5 times a power of 10, with no digits to spare."""
    value = index * step
    if value == 0 or not 1e-3 <= step < 1e6:
        return number(value)
    text = f"{abs(value):,.{max(0, -floor(log10(step) + 1e-9))}f}"
    return f"−{text}" if value < 0 else text
