"""Give printed text a font that has the characters of its language."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl

from hookviz.language.catalogs import ENGLISH
from hookviz.language.speaking import current
from hookviz.settings import ASSETS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHINESE = ASSETS / "fonts" / "HookVizSans.ttf"
"""Latin letters, signs and Chinese characters in common use; ``scripts/make_font.py`` made it."""


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
