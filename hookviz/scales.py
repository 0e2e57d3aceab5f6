"""From values to colour levels, and what the colours mean in words and numbers.

A *level* is an index into a palette of 256 colours: 0 to `LEVELS` − 1 run through the colormap,
and the rest are reserved. Pure NumPy: the colours themselves are `render`'s.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, isfinite, isnan, log10

import numpy as np
from numpy.typing import NDArray

from hookviz.grids import ChannelStats, Floats, Levels, one_of

LEVELS = 253  # odd, so that zero on a symmetric scale lies in the middle of the middle level
NAN_LEVEL, INF_LEVEL, GAP_LEVEL = 253, 254, 255
PERCENTILES = (1, 99)

SCALES = {
    "layer": "from the layer's lowest to its highest value",
    "channel": "from each channel's own lowest to its own highest value",
    "symmetric": "the same distance below and above zero for the whole layer",
    "percentile": "from the layer's 1st to its 99th percentile",
}
"""The scale policies, and what their colours span."""


@dataclass(frozen=True, slots=True)
class Colormap:
    """A colormap of matplotlib and the words for its colours.

    All of them change evenly to the eye from end to end, and are told apart with every common
    kind of colour blindness.
    """

    name: str
    low: str
    middle: str
    high: str
    diverging: bool = False


COLORMAPS = {
    colormap.name: colormap
    for colormap in (
        Colormap("viridis", "dark violet", "teal", "yellow"),
        Colormap("cividis", "dark blue", "grey", "yellow"),
        Colormap("magma", "black", "crimson", "pale yellow"),
        Colormap("inferno", "black", "crimson", "pale yellow"),
        Colormap("gray", "black", "grey", "white"),
        Colormap("RdBu_r", "blue", "white", "red", diverging=True),
        Colormap("coolwarm", "blue", "light grey", "red", diverging=True),
        Colormap("berlin", "light blue", "black", "pink", diverging=True),
    )
}
"""The colormaps on offer: for values of any kind, then the diverging ones for signed values."""

NAN_COLOUR, INF_COLOUR = "#ff00ff", "#00ffff"  # nowhere near any of the colormaps above
NAN_WORD, INF_WORD = "magenta", "cyan"


@dataclass(frozen=True, eq=False, slots=True)
class Limits:
    """The values that the two end colours stand for, per channel.

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
    """The limits of float32 `values`, ``(C, H, W)``, under a policy; `stats` are the values' own.

    All policies but ``"channel"`` look at the whole layer, whichever channels are shown later, so
    a top-k selection keeps its colours. Percentiles are values that occur (no interpolation).
    Where both are the same number, as in a layer that is 99 % zeros, they would hide everything
    else: then the limits are the lowest and highest value.

    Raises:
        SettingError: `scale` is not in `SCALES`.
    """
    one_of("scale", scale, SCALES)
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
    return Limits(scale, np.full(len(stats), low), np.full(len(stats), high), clipped)


def quantise(values: NDArray[np.float32], low: Floats, high: Floats) -> Levels:
    """The level of every value, uint8, ``(N, H, W)``; `low` and `high` are per channel, ``(N,)``.

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


def times(shape: Sequence[int]) -> str:
    """A shape as people write it: ``"64×112×112"``."""
    return "×".join(map(str, shape))


def number(value: float) -> str:
    """`value` as people write it, to 3 significant digits: ``−1.32``, ``12,300``, ``4.1×10⁻⁵``."""
    if not isfinite(value):
        return "NaN" if isnan(value) else ("∞" if value > 0 else "−∞")
    if value == 0:
        return "0"
    mantissa, exponent = f"{abs(value):.2e}".split("e")
    power = int(exponent)
    if -4 < power < 6:
        text = f"{float(f'{mantissa}e{exponent}'):,.{max(0, 2 - power)}f}"
    else:
        text = f"{mantissa}×10{str(power).translate(_SUPERSCRIPT)}"
    return f"−{text}" if value < 0 else text


_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _round_number(index: int, step: float) -> str:
    """``index * step``, for a step of 1, 2 or 5 times a power of 10, with no digits to spare."""
    value = index * step
    if value == 0 or not 1e-3 <= step < 1e6:
        return number(value)
    text = f"{abs(value):,.{max(0, -floor(log10(step) + 1e-9))}f}"
    return f"−{text}" if value < 0 else text


def _percentiles(values: NDArray[np.float32], stats: ChannelStats) -> tuple[float, float]:
    """The 1st and 99th percentile of the finite values: the nearest ranks outside of them."""
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
