"""Draw a grid as a page for print: title, numbered tiles, colour bar and legend."""

import textwrap
from dataclasses import replace
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any

from hookviz.drawing import colormaps
from hookviz.drawing.colormaps import GAP_LEVEL, LEVELS
from hookviz.drawing.figures import new_figure
from hookviz.drawing.layout import Geometry, mosaic
from hookviz.drawing.statistics import SORTS
from hookviz.language.saying import say

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hookviz.drawing.grid import Grid  # whose method draws the page

_MAX_NUMBERED = 256  # in the layer's own order; with more tiles, numbers along the rows are calmer


def draw(grid: "Grid", title: str, dpi: int) -> "Figure":
    """Draw the page as a figure of its own; `Grid.figure` says what is on it."""
    return _Sheet(grid, title, dpi).draw()


def subtitle(grid: "Grid") -> str:
    """Return the line below a title: the activation's shape, how many channels, in which order."""
    count, height, width = grid.shape
    said = [f"{count:,} × {height} × {width}", grid.shown]
    if count > 1 and grid.sort in SORTS:
        said.append(say(SORTS[grid.sort]))
    return "  ·  ".join(said)


class _Sheet:
    """Figure while it is drawn; lengths are in dots, y runs down from the top of the page."""

    def __init__(self, grid: "Grid", title: str, dpi: int) -> None:
        self.grid, self.dpi = grid, dpi
        self.numbered, self.geometry, self.number_size = self._fit()
        self.margin = self.inches(0.3)
        self.left = self.margin + (0 if self.numbered else self.inches(0.35))
        self.width = max(self.geometry.width, self.inches(4.5))
        per_line = self.width / self.dpi * 72  # a letter is about 0.55 of its size wide
        self.title = textwrap.wrap(title, int(per_line / (11 * 0.62)))
        self.subtitle = textwrap.wrap(subtitle(grid), int(per_line / (8 * 0.55)))
        self.legend = textwrap.wrap(grid.legend, int(per_line / (8 * 0.53)))

    def inches(self, length: float) -> int:
        return round(length * self.dpi)

    def points(self, length: float) -> int:
        return ceil(length / 72 * self.dpi)

    def _fit(self) -> tuple[bool, Geometry, float]:
        """Return whether each tile is numbered, the geometry for print, and the numbers' size."""
        base = self.grid.geometry
        across, down = base.columns * base.tile_width, base.rows * base.tile_height
        room = min(self.inches(10) / across, self.inches(6.5) / down)
        tile = base.tile_width * room / self.dpi * 72  # points
        digits = len(str(int(self.grid.order.max())))
        size = min(6.0, tile / (digits * 0.8))  # a digit is 0.64 of its size wide
        countable = self.grid.sort == "index" and len(self.grid.order) > _MAX_NUMBERED
        numbered = size >= 4 and not countable
        side = sqrt(base.tile_height * base.tile_width) * room
        gap = max(1, round(min(side / 14, self.inches(0.03))))
        zoom = min(
            (self.inches(10) - (base.columns - 1) * gap) / across,
            (self.inches(6.5) - (base.rows - 1) * gap) / down,
        )
        magnification = max(1, int(zoom))
        header = self.points(size * 1.15) if numbered and len(self.grid.order) > 1 else 0
        geometry = replace(base, magnification=magnification, gap=gap, header=header)
        return numbered, geometry, size

    def draw(self) -> "Figure":
        top = self.margin
        lines = [(line, 11, True) for line in self.title]
        lines += [(line, 8, False) for line in self.subtitle]
        heading = []
        for line, size, bold in lines:
            heading.append((top, line, size, bold))
            top += self.points(size * 1.45)
        top += self.points(5 if self.numbered else 14)
        bar_top = top + self.geometry.height + self.inches(0.16)
        legend_top = bar_top + self.inches(0.1) + self.points(8 * 2.2)
        height = legend_top + self.points(8 * 1.45) * len(self.legend) + self.margin
        self.page = (self.left + self.width + self.margin, height)
        # a hundredth of a dot more, or rounding down could lose the last one
        across, down = ((side + 0.01) / self.dpi for side in self.page)
        self.figure = new_figure(figsize=(across, down), dpi=self.dpi, facecolor="white")
        for line_top, line, size, bold in heading:
            self._text(self.left, line_top, line, size, weight="bold" if bold else "normal")
        self._mosaic(top)
        self._bar(bar_top)
        for index, line in enumerate(self.legend):
            self._text(self.left, legend_top + index * self.points(8 * 1.45), line, 8)
        return self.figure

    def _text(self, x: float, y: float, text: str, size: float, **options: Any) -> None:
        placed: dict[str, Any] = {"ha": "left", "va": "top", "color": "#222222"} | options
        self.figure.text(
            x / self.page[0],
            1 - y / self.page[1],
            text,
            fontsize=size,
            parse_math=False,  # a "$" in a name is a dollar sign
            **placed,
        )

    def _axes(self, x: int, y: int, width: int, height: int) -> "Axes":
        across, down = self.page
        box = (x / across, 1 - (y + height) / down, width / across, height / down)
        axes = self.figure.add_axes(box)
        axes.set_axis_off()
        return axes

    def _mosaic(self, top: int) -> None:
        geometry, palette = self.geometry, self.grid.palette
        picture = palette[mosaic(self.grid.levels, geometry, GAP_LEVEL)]
        axes = self._axes(self.left, top, geometry.width, geometry.height)
        axes.imshow(picture, interpolation="nearest", aspect="auto")
        if self.numbered and geometry.count > 1:
            for position, channel in enumerate(self.grid.order):
                left, tile_top, _, _ = geometry.box(position)
                self._text(
                    self.left + left,
                    top + tile_top - self.points(1),
                    str(channel),
                    self.number_size,
                    va="bottom",
                )
        elif geometry.count > 1:
            self._row_labels(top)

    def _row_labels(self, top: int) -> None:
        """Write the first channel of a row at its left; the rank of its first tile where sorted."""
        geometry, down = self.geometry, self.geometry.pitch[0]
        by_index = self.grid.sort == "index"
        step = ceil(self.points(7.5) / down)
        for row in range(0, geometry.rows, step):
            position = row * geometry.columns
            label = str(position) if by_index else f"#{position + 1}"
            middle = top + row * down + geometry.tile_height * geometry.magnification / 2
            self._text(
                self.left - self.points(3), middle, label, 6, ha="right", va="center_baseline"
            )
        every = max(1, round(geometry.columns / 8))
        for column in range(0, geometry.columns, every):
            x = self.left + column * geometry.pitch[1]
            label = f"+{column}" if column else (say("channel") if by_index else say("rank"))
            self._text(x, top - self.points(2), label, 6, va="bottom")

    def _bar(self, top: int) -> None:
        wide, high = min(self.width, self.inches(3.6)), self.inches(0.1)
        ramp = self.grid.palette[None, :LEVELS]
        axes = self._axes(self.left, top, wide, high)
        axes.imshow(ramp, interpolation="nearest", aspect="auto")
        for fraction, label in self.grid.ticks:
            side = "left" if fraction == 0 else "right" if fraction == 1 else "center"
            x = self.left + fraction * wide
            self._text(x, top + high + self.points(2), label, 7, ha=side)
        x = self.left + wide + self.inches(0.2)
        stats = self.grid.stats
        for count, level, word in (
            (int(stats.nan.sum()), colormaps.NAN_LEVEL, "NaN"),
            (int(stats.inf.sum()), colormaps.INF_LEVEL, "infinite"),
        ):
            if count:
                swatch = self._axes(x, top, high, high)
                swatch.imshow(self.grid.palette[None, level : level + 1], aspect="auto")
                self._text(x + high + self.points(3), top, f"{count:,} {word}", 7)
                x += self.inches(0.9)
