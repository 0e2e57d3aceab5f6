"""Draw a grid with title, channel numbers, colour bar and legend as one PNG file, on white.

`Grid.figure` is for print. This takes a tenth of its time, and leaves matplotlib's settings alone,
which belong to the cells of a notebook that run meanwhile.
"""

from dataclasses import replace

import numpy as np
from PIL import Image, ImageDraw

from hookviz.drawing.colormaps import GAP_LEVEL, LEVELS
from hookviz.drawing.grid import Grid
from hookviz.drawing.grid_page import subtitle
from hookviz.drawing.layout import mosaic
from hookviz.drawing.lettering import broken, letters, line_height, write
from hookviz.drawing.pictures import encode_png

_MARGIN_PX, _GAP_PX = 16, 6
_BAR_PX = (320, 12)  # width and height of the colour bar
_TITLE_PX, _WORDS_PX, _NUMBER_PX = 20, 14, 11  # heights of letters
_LEAST_PX = 440  # width between the margins
_INK, _GROUND = "#222222", "#ffffff"


def grid_sheet(grid: Grid, title: str) -> bytes:
    """Return the PNG file.

    Each tile has its channel's number above it, or the first of each row at its left where the
    tiles are too narrow. A cell is a square of whole pixels.

    >>> from hookviz.drawing.grid_sheet import grid_sheet
    >>> grid = hookviz.make_grid(torch.rand(16, 8, 8))  # (C, H, W)
    >>> grid_sheet(grid, "noise")[1:4]
    b'PNG'
    """
    large, plain, small = (letters(pixels) for pixels in (_TITLE_PX, _WORDS_PX, _NUMBER_PX))
    wide = max(small.getlength(str(channel)) for channel in grid.order)
    is_each = wide <= grid.geometry.tile_width * grid.geometry.magnification
    header = line_height(1, small) if is_each else 0
    geometry = replace(grid.geometry, header=header, gap=max(2, grid.geometry.gap))
    left = _MARGIN_PX + (0 if is_each else round(wide) + _GAP_PX)
    across = max(geometry.width, _LEAST_PX)
    heading = list(broken(title, large, across))
    below = list(broken(subtitle(grid), plain, across))
    legend = list(broken(grid.legend, plain, across))
    under = _MARGIN_PX + line_height(len(heading), large)
    top = under + line_height(len(below), plain) + _GAP_PX
    bar = top + geometry.height + 2 * _GAP_PX
    words = bar + _BAR_PX[1] + line_height(1, plain) + _GAP_PX
    size = (left + across + _MARGIN_PX, words + line_height(len(legend), plain) + _MARGIN_PX)

    sheet = Image.new("RGB", size, _GROUND)
    pen = ImageDraw.Draw(sheet)
    write(pen, (left, _MARGIN_PX), heading, large, _INK)
    write(pen, (left, under), below, plain, _INK)
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
    write(pen, (left, words), legend, plain, _INK)
    return encode_png(np.asarray(sheet))
