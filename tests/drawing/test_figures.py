"""Every character of the catalogs is in the font for print."""

import io

import numpy as np
import pytest
from fontTools.ttLib import TTFont
from matplotlib.figure import Figure
from PIL import Image

from hookviz.drawing.channel_page import channel_page
from hookviz.drawing.figures import CHINESE, font_file, readable
from hookviz.drawing.grid import make_grid
from hookviz.language.speaking import speaking
from scripts.make_font import characters


def test_the_font_has_every_character_that_is_said() -> None:
    has = TTFont(CHINESE).getBestCmap()
    in_neither_font = set("⌒〄〈〉〚〛") | set(map(chr, range(0x2474, 0x249C)))  # of GB 2312
    missing = {each for each in characters() if ord(each) not in has}
    assert missing <= in_neither_font


def test_each_language_has_its_font_and_a_page_needs_no_other() -> None:
    values = np.random.default_rng(0).normal(size=(3, 6, 6)).astype(np.float32)
    assert font_file("en").stem == "DejaVuSans"
    with speaking("zh_CN"):
        assert font_file() == CHINESE
        assert channel_page(make_grid(values), 1, values[1], format="pdf").startswith(b"%PDF")
    assert font_file().stem == "DejaVuSans"


def _drawn(text: str, *, with_font: bool) -> Image.Image:
    figure = Figure(figsize=(2, 1), dpi=80)
    figure.text(0.1, 0.4, text)
    file = io.BytesIO()
    (readable(figure) if with_font else figure).savefig(file, format="png")
    return Image.open(file).convert("L")


def test_chinese_in_a_figure_is_drawn_and_no_box() -> None:
    """Without the font, matplotlib warns and draws the same box for any two characters."""
    one, other = (np.asarray(_drawn(text, with_font=True)) for text in ("卷积", "池化"))
    assert (one != other).any()
    with pytest.warns(UserWarning, match="missing from font"):
        _drawn("卷积", with_font=False)
