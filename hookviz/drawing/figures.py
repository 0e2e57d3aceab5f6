"""Write figures for print as files, with fonts that have the characters of their language.

Figures get their fonts from matplotlib. Lines of text are written onto pictures with Pillow.
"""

import io
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from PIL import ImageDraw, ImageFont

from hookviz.errors import SettingError, one_of, shorten
from hookviz.language.catalogs import ENGLISH
from hookviz.language.saying import say
from hookviz.language.speaking import current
from hookviz.settings import ASSETS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FORMATS = ("png", "pdf", "svg")
"""What a figure can be written as."""

_DATES = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
_drawing = threading.Lock()  # matplotlib promises no thread safety, and drawing holds the GIL


def new_figure(**options: Any) -> "Figure":
    """Return an empty `matplotlib.figure.Figure` with its options.

    Importing that takes 0.2 s: only who draws for print waits for it.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415

    return Figure(**options)


def check_dpi(dpi: int) -> None:
    """Refuse a resolution that is no whole number from 50 to 600.

    Raises:
        SettingError: it is none.
    """
    if not isinstance(dpi, int) or isinstance(dpi, bool) or not 50 <= dpi <= 600:
        raise SettingError(
            say("dpi={dpi!r} is not a whole number of dots per inch, 50 to 600.", dpi=dpi)
        )


def width_in_points(width_cm: float) -> float:
    """Return the width in points.

    Raises:
        SettingError: it is not from 6 to 60 cm.
    """
    if isinstance(width_cm, bool | str) or not 6 <= width_cm <= 60:
        raise SettingError(
            say(
                "width_cm={width} is not a number of centimetres from 6 to 60; a column has 8.5.",
                width=shorten(repr(width_cm)),
            )
        )
    return width_cm / 2.54 * 72


def figure_file(
    draw: Callable[[], "Figure"],
    format: str,  # noqa: A002 - as savefig
    *,
    dpi: int,
    keeps_text: bool = False,
) -> bytes:
    """Write the figure that `draw` makes: PNG and PDF are the same bytes every time.

    Threads draw one after the other. An SVG that keeps its text has letters, in the font of whoever
    opens it, not their outlines, and is the same every time.

    Raises:
        SettingError: `format` is not in `FORMATS`.
    """
    from matplotlib import rc_context  # noqa: PLC0415

    one_of(say("format"), format, FORMATS)
    file = io.BytesIO()
    options: Any = {"svg.fonttype": "none", "svg.hashsalt": "HookViz"} if keeps_text else {}
    with _drawing, rc_context(options):
        readable(draw()).savefig(file, format=format, dpi=dpi, metadata=_DATES[format])
    return file.getvalue()


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
    """Return a font whose letters are `pixels` high."""
    return ImageFont.truetype(str(font_file()), pixels)


def line_height(lines: int, font: _Font) -> int:
    """Return the height of `lines` lines in pixels."""
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
