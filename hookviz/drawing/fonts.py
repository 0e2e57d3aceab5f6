"""Give printed text a font that has the characters of its language.

Figures get theirs from matplotlib. Lines of text are written onto pictures with Pillow.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from PIL import ImageDraw, ImageFont

from hookviz.language.catalogs import ENGLISH
from hookviz.language.speaking import current
from hookviz.settings import ASSETS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHINESE = ASSETS / "fonts" / "HookVizSans.ttf"
"""Latin letters, signs and Chinese characters in common use; ``scripts/make_font.py`` made it."""

_Font = ImageFont.FreeTypeFont

_LINE = 1.35  # of a letter's height


def font_file(language: str | None = None) -> Path:
    """Return a TrueType font file for print in a language, by default the one that is spoken.

    For English that is DejaVu Sans, which comes with matplotlib.
    """
    if (language or current()) == ENGLISH:
        return Path(mpl.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")
    return CHINESE


def readable(figure: "Figure") -> "Figure":
    """Give each text of a figure a font that has its characters, and return the figure."""
    from matplotlib.text import Text  # noqa: PLC0415 - see `figures.new_figure`

    for text in figure.findobj(Text):
        if not text.get_text().isascii():
            text.set_fontfamily(_families())
    return figure


@cache
def _families() -> list[str]:
    """Register our font with matplotlib; return its own font and, for what that lacks, ours."""
    from matplotlib import font_manager  # noqa: PLC0415

    font_manager.fontManager.addfont(str(CHINESE))
    own = font_manager.FontProperties(fname=str(CHINESE)).get_name()
    return [*mpl.rcParams["font.family"], own]


def pillow_font(pixels: int) -> _Font:
    """Return a font whose letters are so many pixels high."""
    return ImageFont.truetype(str(font_file()), pixels)


def line_height(lines: int, font: _Font) -> int:
    """Return how many pixels down so many lines take."""
    return round(lines * font.size * _LINE)


def write_lines(
    pen: ImageDraw.ImageDraw, at: tuple[int, int], lines: Sequence[str], font: _Font, ink: str
) -> None:
    """Write lines one below the other; `at` is the left upper corner in pixels, (x, y)."""
    for place, line in enumerate(lines):
        pen.text((at[0], at[1] + line_height(place, font)), line, ink, font)


def break_lines(text: str, font: _Font, width: int) -> list[str]:
    """Break text into lines of `width` pixels: between words, and between Chinese characters."""
    lines, line = [], ""
    for part in _parts(text):
        if line and font.getlength((line + part).rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += part
    return [*lines, line.rstrip()]


def _parts(text: str) -> Iterator[str]:
    word = ""
    for letter in text:
        word += letter
        if letter == " " or ord(letter) > 0x2E80:  # from here on are Chinese characters and signs
            yield word
            word = ""
    yield word
