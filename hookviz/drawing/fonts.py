"""The font of printed text, in any language of the page."""

from functools import cache
from pathlib import Path

import matplotlib
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.text import Text

from hookviz.language.catalogs import ENGLISH
from hookviz.language.speaking import current
from hookviz.settings import ASSETS

CHINESE = ASSETS / "fonts" / "HookVizSans.ttf"
"""Latin letters, signs and Chinese characters in common use; ``scripts/make_font.py`` made it."""


def font_file(language: str | None = None) -> Path:
    """A TrueType font for what is printed in a language, without one in that which is spoken.

    For English that is DejaVu Sans, which comes with matplotlib.
    """
    if (language or current()) == ENGLISH:
        return Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")
    return CHINESE


def readable(figure: Figure) -> Figure:
    """The figure, with a font that has the characters of each text in it; for print."""
    for text in figure.findobj(Text):
        if not text.get_text().isascii():
            text.set_fontfamily(_families())
    return figure


@cache
def _families() -> list[str]:
    """Matplotlib's own font, and ours for what that lacks; its list of fonts learns of ours."""
    font_manager.fontManager.addfont(str(CHINESE))
    own = font_manager.FontProperties(fname=str(CHINESE)).get_name()
    return [*matplotlib.rcParams["font.family"], own]
