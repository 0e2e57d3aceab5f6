"""Draw numbers as a chart of bars or lines, and names with edges between them as an arc diagram.

Charts are matplotlib's, small ones and arcs Pillow's. Of an arc diagram each way past others is an
arc: Wattenberg, "Arc Diagrams: Visualizing Structure in Strings" (2002).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from hookviz.drawing.colormaps import ABOVE, ACCENT, BELOW, CONTRAST
from hookviz.drawing.figures import figure_file, new_figure
from hookviz.errors import SettingError, shorten
from hookviz.language.saying import joined, mark, say
from hookviz.types import Pixels
from hookviz.wording import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = (ACCENT, CONTRAST, "#8a6fb8", "#b58900", "#5a7fb0")
"""One per series: told apart without red and green, and seen on dark and on light."""

_MOST_LABELS = 40  # names that can stand under a chart one by one
_FEW_LABELS = 5  # of a scale that has more
_LONGEST = 28  # letters of a name; longer ones would leave the chart no room

_FINE = 2  # times as large as an arc diagram is drawn first, before it is made smaller
_INK, _GREY = "#1a1a1a", "#b5b5b5"


@dataclass(frozen=True, eq=False, slots=True)
class Chart:
    """Numbers as bars or lines over places that have names.

    Attributes:
        labels: what stands under each place, in order.
        series: the numbers of each bar or line by its name, as many as `labels`; NaN leaves a gap.
        kind: ``"bars"`` or ``"lines"``.
        unit: what the numbers are, along the axis.
        places: what the places are, where there are too many for their labels.
        is_scale: whether the labels are numbers in order. Where there are too many labels, those of
            a scale stand at its ends; other places are counted.
        log: whether the axis is logarithmic; numbers of 0 and less are left out then.
        positions: how far each place lies along the bottom, ascending; evenly spaced if empty.
    """

    title: str
    labels: tuple[str, ...]
    series: Mapping[str, NDArray[np.float64]]
    kind: str = "bars"
    unit: str = ""
    places: str = mark("place in the order of execution")
    log: bool = False
    is_scale: bool = False
    positions: tuple[float, ...] = ()

    @property
    def steps(self) -> NDArray[np.float64]:
        """Where each place lies along the bottom, from 0 to their number less one."""
        if len(self.positions) < 2:
            return np.arange(len(self.labels), dtype=float)
        positions = np.array(self.positions) - self.positions[0]
        return np.asarray((len(positions) - 1) * positions / positions[-1], dtype=float)

    @property
    def is_signed(self) -> bool:
        """Whether it is bars of one series about zero, with a colour for either side."""
        values = list(self.series.values())
        return self.kind == "bars" and len(values) == 1 and bool((values[0] < 0).any())

    @property
    def alt(self) -> str:
        """Text for those who do not see the chart."""
        return say(
            "Chart of {title}: {series}, over {place_count} places.",
            title=self.title,
            series=joined(self.series),
            place_count=len(self.labels),
        )


def chart_figure(chart: Chart, *, ink: str = "#1a1a1a", is_titled: bool = False) -> "Figure":
    """Draw the chart without a background, its text and axes in `ink`.

    The legend stands above the axes; where there will be a title, below them.

    Raises:
        SettingError: the chart's kind is neither bars nor lines, or a series has another length
            than the labels.
    """
    if chart.kind not in ("bars", "lines"):
        raise SettingError(say('kind={kind!r} is neither "bars" nor "lines".', kind=chart.kind))
    for name, values in chart.series.items():
        if len(values) != len(chart.labels):
            raise SettingError(
                say(
                    "The series {name!r} has {value_count} numbers for {label_count} labels.",
                    name=name,
                    value_count=len(values),
                    label_count=len(chart.labels),
                )
            )
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - see `figures.new_figure`

    figure = new_figure(figsize=(9.0, 3.4), layout="constrained", facecolor="none")
    axes = figure.add_subplot(facecolor="none")
    positions = chart.steps
    breadth = 0.84 / max(1, len(chart.series))
    for index, (name, numbers) in enumerate(chart.series.items()):
        values = _drawable(numbers, log=chart.log)
        colour = COLOURS[index % len(COLOURS)]
        if chart.kind == "bars":
            shift = (index - (len(chart.series) - 1) / 2) * breadth
            colours = [BELOW if value < 0 else ABOVE for value in values]
            painted = colours if chart.is_signed else colour
            axes.bar(positions + shift, values, breadth, color=painted, label=name)
        else:
            axes.plot(positions, values, color=colour, label=name, marker="o", markersize=3)
    if chart.log:
        axes.set_yscale("log")
    axes.set_ylabel(chart.unit, color=ink)
    axes.set_xlim(-0.6, len(chart.labels) - 0.4)
    if len(chart.labels) <= _MOST_LABELS:
        labels = [shorten(label, _LONGEST) for label in chart.labels]
        long = max(map(len, labels), default=0) * len(labels) > 90
        turn = 90 if long else 0
        # a "$" in a name is a dollar sign
        axes.set_xticks(positions, labels, rotation=turn, fontsize=8, parse_math=False)
    elif chart.is_scale:
        few = np.linspace(0, len(chart.labels) - 1, _FEW_LABELS).round().astype(int)
        axes.set_xticks(few, [chart.labels[at] for at in few], fontsize=8, parse_math=False)
        axes.set_xlabel(chart.places, color=ink)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel(chart.places, color=ink)
    axes.tick_params(colors=ink)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(ink)
    axes.grid(axis="y", color=ink, alpha=0.15)
    axes.set_axisbelow(True)
    if len(chart.series) > 1:
        figure.legend(
            loc="outside lower center" if is_titled else "outside upper center",
            ncols=len(chart.series),
            labelcolor=ink,
            frameon=False,
            fontsize=9,
        )
    return figure


def titled_figure(chart: Chart) -> "Figure":
    """Draw the chart on white, with its title.

    Raises:
        SettingError: as `chart_figure` does.
    """
    figure = chart_figure(chart, is_titled=True)
    figure.set_facecolor("white")
    figure.suptitle(chart.title, fontsize=10, wrap=True)
    return figure


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of numbers, which lie between its ends, 0…1, and the ticks along it."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool

    def share(self, value: float) -> float | None:
        """Return how far along the axis a number lies; None for what cannot be drawn on it."""
        if not np.isfinite(value) or (self.log and value <= 0):
            return None
        placed = np.log10(value) if self.log else value
        return float((placed - self.low) / (self.high - self.low))


def axis_of(chart: Chart) -> Axis:
    """Return an axis that all numbers fit on; bars start at its zero or its lower end."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    drawn = [_drawable(values, log=chart.log) for values in chart.series.values()]
    every = np.concatenate(drawn) if drawn else np.zeros(0)
    every = every[np.isfinite(every)]
    low, high = (float(every.min()), float(every.max())) if every.size else (0.0, 1.0)
    if chart.log:
        low, high = float(np.floor(np.log10(low or 1))), float(np.ceil(np.log10(high or 1)))
        high += high == low
        step = max(1, int((high - low) // 5))
        powers = range(int(low), int(high) + 1, step)
        ticks = tuple(((power - low) / (high - low), number(10.0**power)) for power in powers)
        return Axis(low, high, ticks, log=True)
    if chart.kind == "bars":
        low, high = min(0.0, low), max(0.0, high)
    values = MaxNLocator(5).tick_values(low, high if high > low else low + 1)
    low, high = float(values[0]), float(values[-1])
    ticks = tuple(((float(value) - low) / (high - low), number(float(value))) for value in values)
    return Axis(low, high, ticks, log=False)


def chart_png(chart: Chart, *, ink: str = "#1a1a1a", dpi: int = 160) -> bytes:
    """Draw the chart as a PNG without a background. Threads draw one after the other.

    Raises:
        SettingError: as `chart_figure` does.
    """
    return figure_file(lambda: chart_figure(chart, ink=ink), "png", dpi=dpi)


def chart_thumbnail(chart: Chart, width: int, height: int) -> Pixels:
    """Draw the bars or lines alone, RGBA uint8 ``(height, width, 4)`` on no ground."""
    axis = axis_of(chart)
    picture = Image.new("RGBA", (width, height))
    pen = ImageDraw.Draw(picture)
    step, count = width / max(1, len(chart.labels)), max(1, len(chart.series))

    def down(share: float) -> float:
        return (1 - min(1.0, max(0.0, share))) * (height - 1)

    base = down(axis.share(0.0) or 0.0)
    for index, (colour, values) in enumerate(zip(cycle(COLOURS), chart.series.values())):
        shares = [axis.share(float(value)) for value in values]
        if chart.kind == "lines":
            dots = [
                ((place + 0.5) * step, down(share))
                for place, share in enumerate(shares)
                if share is not None
            ]
            pen.line(dots, colour, 2)
            continue
        for place, share in enumerate(shares):
            if share is None:
                continue
            left = (place + 0.1 + 0.8 * index / count) * step
            ends = sorted((base, down(share)))
            signed = BELOW if values[place] < 0 else ABOVE
            box = (left, ends[0], max(left, left + 0.8 * step / count - 1), ends[1])
            pen.rectangle(box, signed if chart.is_signed else colour)
    drawn: Pixels = np.asarray(picture)
    return drawn


def _drawable(values: NDArray[np.float64], *, log: bool) -> NDArray[np.float64]:
    numbers = np.asarray(values, np.float64).copy()
    numbers[~np.isfinite(numbers)] = np.nan
    if log:
        numbers[numbers <= 0] = np.nan
    return numbers


def arc_diagram(
    names: Sequence[str], edges: Sequence[tuple[int, int]], highlighted: Collection[int] = ()
) -> Pixels:
    """Draw a dot for each name, and lines and arcs between the dots: RGB uint8, ``(H, W, 3)``.

    Neighbours are joined by a line. Names are left out where there is no room for all of them.

    An edge is (from, to) by position in `names`, the smaller one first. Dots at `highlighted`
    positions are orange.
    """
    # from top to bottom at first, then turned: text is written along lines
    pitch = _FINE * max(4, min(24, 1200 // len(names)))
    every = ceil(_FINE * 12 / pitch)  # of the dots has room for its name
    font = ImageFont.load_default(size=_FINE * 11)
    left = _FINE * 12 + round(max(font.getlength(name) for name in names[::every]))
    top, dot = _FINE * 12, max(2, pitch // 6)
    longest = max((to - source for source, to in edges), default=1)
    reach = min(_FINE * 360, longest * pitch // 2)
    size = (left + reach + top, 2 * top + (len(names) - 1) * pitch)
    canvas = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(canvas)
    for source, to in edges:
        high, low = top + source * pitch, top + to * pitch
        if to - source == 1:
            draw.line((left, high, left, low), _GREY, _FINE)
        else:
            wide = reach * (to - source) // longest
            box = (left - wide, high, left + wide, low)
            draw.arc(box, -90, 90, ACCENT, max(_FINE, pitch // 9))
    for position, name in enumerate(names):
        middle, colour = top + position * pitch, CONTRAST if position in highlighted else _INK
        draw.ellipse((left - dot, middle - dot, left + dot, middle + dot), colour)
        if position % every == 0:
            draw.text((left - _FINE * 8, middle), name, colour, font, "rm")
    turned = canvas.transpose(Image.Transpose.ROTATE_90)
    picture: Pixels = np.asarray(turned.reduce(_FINE))
    return picture
