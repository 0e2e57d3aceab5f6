"""Draw names in a row, and the edges between them, as an arc diagram.

An arc for each way past others, as in Wattenberg, "Arc Diagrams: Visualizing Structure in Strings"
(2002).
"""

from collections.abc import Collection, Sequence
from math import ceil

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from hookviz.types import Pixels

_FINE = 2  # times as large as it is drawn first, before it is made smaller
_INK, _GREY, _ACCENT, _JOIN = "#1a1a1a", "#b5b5b5", "#1f9a9d", "#c2603c"


def arc_diagram(
    names: Sequence[str], edges: Sequence[tuple[int, int]], highlighted: Collection[int] = ()
) -> Pixels:
    """Draw a dot for each name, and lines and arcs between the dots: RGB uint8, ``(H, W, 3)``.

    Neighbours are joined by a line. Names are left out where there is no room for all of them.

    Args:
        names: what stands at each dot.
        edges: (from, to) by position in `names`, the smaller one first.
        highlighted: positions whose dots are orange.
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
            draw.arc(box, -90, 90, _ACCENT, max(_FINE, pitch // 9))
    for position, name in enumerate(names):
        middle, colour = top + position * pitch, _JOIN if position in highlighted else _INK
        draw.ellipse((left - dot, middle - dot, left + dot, middle + dot), colour)
        if position % every == 0:
            draw.text((left - _FINE * 8, middle), name, colour, font, "rm")
    turned = canvas.transpose(Image.Transpose.ROTATE_90)
    picture: Pixels = np.asarray(turned.reduce(_FINE))
    return picture
