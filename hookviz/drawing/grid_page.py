"""Draw a grid with its channel numbers: as a page for print, into axes, or as a PNG sheet.

Pages and axes are matplotlib's. The sheet is Pillow's: it takes a tenth of the time, and leaves
matplotlib's settings alone, which belong to the cells of a notebook that run meanwhile.
"""

import textwrap
from dataclasses import replace
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageDraw

from hookviz.drawing import colormaps
from hookviz.drawing.colormaps import GAP_LEVEL, LEVELS
from hookviz.drawing.figures import break_lines, line_height, new_figure, pillow_font, write_lines
from hookviz.drawing.layout import Geometry, mosaic
from hookviz.drawing.pictures import encode_png
from hookviz.drawing.statistics import SORTS
from hookviz.errors import HookVizError, SettingError
from hookviz.language.saying import say

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

    from hookviz.drawing.grid import Grid  # whose methods draw here

_MAX_NUMBERED = 256  # in the layer's own order; with more tiles, numbers along the rows are calmer

# Of tiles in axes.
_TILE_PX = 64  # at least, so that gaps and the room for numbers are small beside a cell
_NUMBER_PT, _LEAST_PT = 7.0, 4.0  # a smaller number can't be read

# Of the sheet.
_MARGIN_PX, _GAP_PX = 16, 6
_BAR_PX = (320, 12)  # width and height of the colour bar
_TITLE_PX, _WORDS_PX, _NUMBER_PX = 20, 14, 11  # heights of letters
_LEAST_PX = 440  # width between the margins
_INK, _GROUND = "#222222", "#ffffff"


def _subtitle(grid: "Grid") -> str:
    """Return the line below a title: the activation's shape, how many channels, in which order."""
    count, height, width = grid.shape
    said = [f"{count:,} × {height} × {width}", grid.shown]
    if count > 1 and grid.sort in SORTS:
        said.append(say(SORTS[grid.sort]))
    return "  ·  ".join(said)


class GridPage:
    """Page of `Grid.figure`; lengths are in dots, y runs down from the top of the page."""

    def __init__(self, grid: "Grid", title: str, dpi: int) -> None:
        self.grid, self.dpi = grid, dpi
        self.numbered, self.geometry, self.number_size = self._fit()
        self.margin = self._inches(0.3)
        self.left = self.margin + (0 if self.numbered else self._inches(0.35))
        self.width = max(self.geometry.width, self._inches(4.5))
        per_line = self.width / self.dpi * 72  # a letter is about 0.55 of its size wide
        self.title = textwrap.wrap(title, int(per_line / (11 * 0.62)))
        self.subtitle = textwrap.wrap(_subtitle(grid), int(per_line / (8 * 0.55)))
        self.legend = textwrap.wrap(grid.legend, int(per_line / (8 * 0.53)))

    def _inches(self, length: float) -> int:
        return round(length * self.dpi)

    def _points(self, length: float) -> int:
        return ceil(length / 72 * self.dpi)

    def _fit(self) -> tuple[bool, Geometry, float]:
        """Return whether each tile is numbered, the geometry for print, and the numbers' size."""
        base = self.grid.geometry
        across, down = base.columns * base.tile_width, base.rows * base.tile_height
        room = min(self._inches(10) / across, self._inches(6.5) / down)
        tile = base.tile_width * room / self.dpi * 72  # points
        digits = len(str(int(self.grid.order.max())))
        size = min(6.0, tile / (digits * 0.8))  # a digit is 0.64 of its size wide
        countable = self.grid.sort == "index" and len(self.grid.order) > _MAX_NUMBERED
        numbered = size >= 4 and not countable
        side = sqrt(base.tile_height * base.tile_width) * room
        gap = max(1, round(min(side / 14, self._inches(0.03))))
        zoom = min(
            (self._inches(10) - (base.columns - 1) * gap) / across,
            (self._inches(6.5) - (base.rows - 1) * gap) / down,
        )
        magnification = max(1, int(zoom))
        header = self._points(size * 1.15) if numbered and len(self.grid.order) > 1 else 0
        geometry = replace(base, magnification=magnification, gap=gap, header=header)
        return numbered, geometry, size

    def draw(self) -> "Figure":
        """Draw the page as a figure of its own."""
        top = self.margin
        lines = [(line, 11, True) for line in self.title]
        lines += [(line, 8, False) for line in self.subtitle]
        heading = []
        for line, size, bold in lines:
            heading.append((top, line, size, bold))
            top += self._points(size * 1.45)
        top += self._points(5 if self.numbered else 14)
        bar_top = top + self.geometry.height + self._inches(0.16)
        legend_top = bar_top + self._inches(0.1) + self._points(8 * 2.2)
        height = legend_top + self._points(8 * 1.45) * len(self.legend) + self.margin
        self.page = (self.left + self.width + self.margin, height)
        # a hundredth of a dot more, or rounding down could lose the last one
        across, down = ((side + 0.01) / self.dpi for side in self.page)
        self.figure = new_figure(figsize=(across, down), dpi=self.dpi, facecolor="white")
        for line_top, line, size, bold in heading:
            self._text(self.left, line_top, line, size, weight="bold" if bold else "normal")
        self._mosaic(top)
        self._bar(bar_top)
        for index, line in enumerate(self.legend):
            self._text(self.left, legend_top + index * self._points(8 * 1.45), line, 8)
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
                    top + tile_top - self._points(1),
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
        step = ceil(self._points(7.5) / down)
        for row in range(0, geometry.rows, step):
            position = row * geometry.columns
            label = str(position) if by_index else f"#{position + 1}"
            middle = top + row * down + geometry.tile_height * geometry.magnification / 2
            self._text(
                self.left - self._points(3), middle, label, 6, ha="right", va="center_baseline"
            )
        counted = say("channel") if by_index else say("rank")
        every = max(1, round(geometry.columns / 8))
        for column in range(0, geometry.columns, every):
            x = self.left + column * geometry.pitch[1]
            label = f"+{column}" if column else counted
            self._text(x, top - self._points(2), label, 6, va="bottom")

    def _bar(self, top: int) -> None:
        wide, high = min(self.width, self._inches(3.6)), self._inches(0.1)
        ramp = self.grid.palette[None, :LEVELS]
        axes = self._axes(self.left, top, wide, high)
        axes.imshow(ramp, interpolation="nearest", aspect="auto")
        for fraction, label in self.grid.ticks:
            side = {0.0: "left", 1.0: "right"}.get(fraction, "center")
            x = self.left + fraction * wide
            self._text(x, top + high + self._points(2), label, 7, ha=side)
        x = self.left + wide + self._inches(0.2)
        stats = self.grid.stats
        for count, level, word in (
            (int(stats.nan.sum()), colormaps.NAN_LEVEL, "NaN"),
            (int(stats.inf.sum()), colormaps.INF_LEVEL, "infinite"),
        ):
            if count:
                swatch = self._axes(x, top, high, high)
                swatch.imshow(self.grid.palette[None, level : level + 1], aspect="auto")
                self._text(x + high + self._points(3), top, f"{count:,} {word}", 7)
                x += self._inches(0.9)


def draw_tiles(grid: "Grid", axes: "Axes") -> "ScalarMappable":
    """Draw the tiles into axes; `Grid.draw` has the details."""
    from matplotlib.axes import Axes  # noqa: PLC0415 - see `figures.new_figure`

    if not isinstance(axes, Axes):
        raise SettingError(
            say(
                "axes are of the type {kind}, not matplotlib's Axes; figure.add_subplot() gives "
                "such axes.",
                kind=type(axes).__name__,
            )
        )
    scale = mappable(grid)
    geometry, size = _fit(grid, axes)
    picture = grid.palette[mosaic(grid.levels, geometry, GAP_LEVEL)]
    axes.imshow(picture, interpolation="nearest")
    axes.set_axis_off()
    if geometry.header:
        for position, channel in enumerate(grid.order):
            left, top, _, _ = geometry.box(position)
            corner = left - 0.5, top - 0.5  # of the tile's first dot
            axes.text(*corner, str(channel), fontsize=size, ha="left", va="bottom")
    return scale


def mappable(grid: "Grid") -> "ScalarMappable":
    """Return the scale of the tiles shown, in the grid's own colours.

    Raises:
        HookVizError: they have more than one.
    """
    low, high = grid.limits.low[grid.order], grid.limits.high[grid.order]
    if (low != low[0]).any() or (high != high[0]).any():
        raise HookVizError(
            say(
                "Each channel of this grid has its own scale, and no colour bar is true of all. "
                "make_grid(…, scale='layer') has one scale."
            )
        )
    from matplotlib.cm import ScalarMappable  # noqa: PLC0415 - see `figures.new_figure`
    from matplotlib.colors import ListedColormap, Normalize  # noqa: PLC0415

    scale = Normalize(float(low[0]), float(high[0]))
    return ScalarMappable(scale, ListedColormap(grid.palette[:LEVELS] / 255.0))


def _fit(grid: "Grid", axes: "Axes") -> tuple[Geometry, float]:
    """Return where the tiles lie, in dots of their picture, and the size of their numbers."""
    base = grid.geometry
    zoom = max(1, ceil(_TILE_PX / max(base.tile_height, base.tile_width)))
    gap = max(1, round(max(base.tile_height, base.tile_width) * zoom / 16))
    geometry = replace(base, magnification=zoom, gap=gap, header=0)
    box = axes.get_window_extent().transformed(axes.figure.dpi_scale_trans.inverted())
    wide, high = box.width * 72, box.height * 72  # points
    high -= base.rows * _NUMBER_PT * 1.25
    dot = max(0.0, min(wide / geometry.width, high / geometry.height))  # points, with the headers
    digits = len(str(int(grid.order.max())))
    size = min(_NUMBER_PT, base.tile_width * zoom * dot / (digits * 0.65))  # 0.64 is a digit wide
    if size < _LEAST_PT:
        return geometry, size
    return replace(geometry, header=ceil(size * 1.25 / dot)), size


def grid_sheet(grid: "Grid", title: str) -> bytes:
    """Draw title, numbered tiles, colour bar and legend on white, as a PNG file.

    Each tile has its channel's number above it, or the first of each row at its left where the
    tiles are too narrow. A cell is a square of whole pixels.

    >>> from hookviz.drawing.grid_page import grid_sheet
    >>> grid = hookviz.make_grid(torch.rand(16, 8, 8))  # (C, H, W)
    >>> grid_sheet(grid, "noise")[1:4]
    b'PNG'
    """
    large, plain, small = (pillow_font(pixels) for pixels in (_TITLE_PX, _WORDS_PX, _NUMBER_PX))
    wide = max(small.getlength(str(channel)) for channel in grid.order)
    is_each = wide <= grid.geometry.tile_width * grid.geometry.magnification
    header = line_height(1, small) if is_each else 0
    geometry = replace(grid.geometry, header=header, gap=max(2, grid.geometry.gap))
    left = _MARGIN_PX + (0 if is_each else round(wide) + _GAP_PX)
    across = max(geometry.width, _LEAST_PX)
    heading = break_lines(title, large, across)
    below = break_lines(_subtitle(grid), plain, across)
    legend = break_lines(grid.legend, plain, across)
    under = _MARGIN_PX + line_height(len(heading), large)
    top = under + line_height(len(below), plain) + _GAP_PX
    bar = top + geometry.height + 2 * _GAP_PX
    words = bar + _BAR_PX[1] + line_height(1, plain) + _GAP_PX
    size = (left + across + _MARGIN_PX, words + line_height(len(legend), plain) + _MARGIN_PX)

    sheet = Image.new("RGB", size, _GROUND)
    pen = ImageDraw.Draw(sheet)
    write_lines(pen, (left, _MARGIN_PX), heading, large, _INK)
    write_lines(pen, (left, under), below, plain, _INK)
    tiles = Image.fromarray(grid.palette[mosaic(grid.levels, geometry, GAP_LEVEL)])
    sheet.paste(tiles, (left, top), tiles)  # the gaps are transparent
    rows = -(-line_height(1, small) // geometry.pitch[0])  # from a number to the one below it
    for position in range(0, geometry.count, 1 if is_each else rows * geometry.columns):
        x, y, _right, end = geometry.box(position)
        at = (left + x, top + y - 2) if is_each else (left - _GAP_PX, top + (y + end) / 2)
        number = str(grid.order[position])
        pen.text(at, number, _INK, small, anchor="ls" if is_each else "rm")
    ramp = grid.palette[np.arange(_BAR_PX[0]) * LEVELS // _BAR_PX[0], :3]
    sheet.paste(Image.fromarray(np.tile(ramp, (_BAR_PX[1], 1, 1))), (left, bar))
    for share, label in grid.ticks:
        anchor = {0.0: "la", 1.0: "ra"}.get(share, "ma")
        place = (left + share * _BAR_PX[0], bar + _BAR_PX[1] + 2)
        pen.text(place, label, _INK, small, anchor=anchor)
    write_lines(pen, (left, words), legend, plain, _INK)
    return encode_png(np.asarray(sheet))
