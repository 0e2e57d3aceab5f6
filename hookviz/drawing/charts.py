"""A lens's numbers as a chart: a picture of bars or lines, by matplotlib."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from hookviz.drawing.colours import ACCENT, CONTRAST
from hookviz.drawing.figures import figure_file
from hookviz.drawing.panels import ChartPanel
from hookviz.errors import SettingError, shorten

COLOURS = (ACCENT, CONTRAST, "#8a6fb8", "#b58900", "#5a7fb0")
"""One per series: told apart without red and green, and seen on dark and on light."""

_MOST_LABELS = 40  # names that can stand under a chart one by one
_LONGEST = 28  # letters of a name; longer ones would leave the chart no room


def chart_figure(panel: ChartPanel, *, ink: str = "#1a1a1a", width: float = 9.0) -> Figure:
    """The chart as a figure without a background, its text and axes in `ink`.

    Raises:
        SettingError: the panel's kind is neither bars nor lines, or a series has another length
            than the labels.
    """
    if panel.kind not in ("bars", "lines"):
        raise SettingError(f'kind={panel.kind!r} is neither "bars" nor "lines".')
    for name, values in panel.series.items():
        if len(values) != len(panel.labels):
            raise SettingError(
                f"The series {name!r} has {len(values)} numbers for {len(panel.labels)} labels."
            )
    figure = Figure(figsize=(width, 3.4), layout="constrained", facecolor="none")
    axes = figure.add_subplot(facecolor="none")
    positions = np.arange(len(panel.labels))
    breadth = 0.84 / max(1, len(panel.series))
    for index, (name, numbers) in enumerate(panel.series.items()):
        values = _drawable(numbers, log=panel.log)
        colour = COLOURS[index % len(COLOURS)]
        if panel.kind == "bars":
            shift = (index - (len(panel.series) - 1) / 2) * breadth
            axes.bar(positions + shift, values, breadth, color=colour, label=name)
        else:
            axes.plot(positions, values, color=colour, label=name, marker="o", markersize=3)
    if panel.log:
        axes.set_yscale("log")
    axes.set_ylabel(panel.unit, color=ink)
    axes.set_xlim(-0.6, len(panel.labels) - 0.4)
    if len(panel.labels) <= _MOST_LABELS:
        labels = [shorten(label, _LONGEST) for label in panel.labels]
        long = max(map(len, labels), default=0) * len(labels) > 90
        turn = 90 if long else 0
        # a "$" in a name is a dollar sign
        axes.set_xticks(positions, labels, rotation=turn, fontsize=8, parse_math=False)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel(panel.places, color=ink)
    axes.tick_params(colors=ink)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(ink)
    axes.grid(axis="y", color=ink, alpha=0.15)
    axes.set_axisbelow(True)
    if len(panel.series) > 1:
        figure.legend(
            loc="outside upper center",  # and not over the lines
            ncols=len(panel.series),
            labelcolor=ink,
            frameon=False,
            fontsize=9,
        )
    return figure


def chart_png(panel: ChartPanel, *, ink: str = "#1a1a1a", dpi: int = 160) -> bytes:
    """The chart as a PNG without a background. Threads draw one after the other.

    Raises:
        SettingError: as `chart_figure` does.
    """
    return figure_file(lambda: chart_figure(panel, ink=ink), "png", dpi=dpi)


def _drawable(values: NDArray[np.float64], *, log: bool) -> NDArray[np.float64]:
    numbers = np.asarray(values, np.float64).copy()
    numbers[~np.isfinite(numbers)] = np.nan
    if log:
        numbers[numbers <= 0] = np.nan
    return numbers
