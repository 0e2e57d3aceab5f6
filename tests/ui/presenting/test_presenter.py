import json
import re
from typing import Any
from urllib.parse import unquote, urlencode
from xml.etree import ElementTree

import pytest
import zxingcpp
from PIL import Image, ImageDraw

import hookviz
from hookviz.serving.short_links import short_links
from hookviz.ui.link import qr_code
from hookviz.ui.presenting.presenter import (
    LONGEST_TITLE,
    MOST_SLIDES,
    Slide,
    link_for,
    read_slides,
)

BASE = "https://hookviz.example.org/lab/?model=x#y"
LONG = {"model": "ShapesNet", "layer": "stage1.first.conv", "channel": "3", "scale": "symmetric"}


PART = re.compile(r"([Mm])([-\d.]+) ([-\d.]+)|h([\d.]+)")
MODULE = 8  # pixels


def decoded(picture: str) -> str:
    """What ZXing reads off a QR code, whose lines are painted here as its SVG has them."""
    svg = ElementTree.fromstring(unquote(picture.partition(",")[2]))  # noqa: S314 - our own
    shown = Image.new("L", (int(svg.attrib["width"]),) * 2, 255)
    pen, x, y = ImageDraw.Draw(shown), 0.0, 0.0
    lines = next(part for part in svg.iter() if "stroke" in part.attrib)
    for move, across, down, length in PART.findall(lines.attrib["d"]):
        if length:
            box = (x, y - 0.5, x + float(length), y + 0.5)
            left, top, right, bottom = (round(side * MODULE) for side in box)
            pen.rectangle((left, top, right - 1, bottom - 1), 0)
            x += float(length)
        else:
            x, y = (
                (float(across), float(down))
                if move == "M"
                else (x + float(across), y + float(down))
            )
    [code] = zxingcpp.read_barcodes(shown)
    return str(code.text)


def test_a_short_link_is_the_link_itself_and_a_long_one_has_a_code_beside_the_page() -> None:
    made = link_for(BASE, {"channel": "3", "sort": "index"}, "ann")
    assert made.link == "https://hookviz.example.org/lab/?channel=3"
    assert not made.is_code
    assert decoded(made.picture) == made.link
    made = link_for(BASE, LONG, "ann")
    start, _, code = made.link.rpartition("/")
    assert start == "https://hookviz.example.org/lab/hookviz/go"
    assert made.is_code
    assert short_links().query_of(code) == urlencode(LONG)
    assert decoded(made.picture) == made.link
    assert link_for(BASE, LONG, "ann") == made
    into_class = "https://hookviz.example.org/lab/?follow=ABCDEF"
    assert decoded(qr_code(into_class)) == into_class


GOOD = {"title": "Edges", "query": "model=ShapesNet&layer=conv1"}


def written(*slides: Any, version: Any = 1, **more: Any) -> str:
    return json.dumps({"hookviz-slides": version, "slides": list(slides), **more})


def test_slides_are_read_in_order() -> None:
    other = {"title": "  边缘 <b>&amp;  ", "query": "?lens=grad-cam&grad-cam-method=Grad-CAM"}
    assert read_slides(written(GOOD, other, note="more is nothing to us")) == (
        Slide("Edges", "model=ShapesNet&layer=conv1"),
        Slide("边缘 <b>&amp;", "lens=grad-cam&grad-cam-method=Grad-CAM"),
    )
    assert len(read_slides(written(*[GOOD] * MOST_SLIDES))) == MOST_SLIDES


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not written in JSON"),
        ("[" * 100_000, "not written in JSON"),
        ('{"slides": {}}', "no list of slides"),
        ('{"slides": []}', "hookviz-slides is None, and has to be 1"),
        (written(GOOD, version="1"), "hookviz-slides is '1', and has to be 1"),
        (written(GOOD, version="x" * 10_000), "hookviz-slides is 'xxx.*…"),
        (written(), "has 0 slides. From 1 to 100"),
        (written(*[GOOD] * 101), "has 101 slides"),
        (written(GOOD, "x"), "Slide 2: it needs a title and a query, and nothing else"),
        (written({**GOOD, "href": "javascript:x"}), "Slide 1: it needs a title and a query"),
        (written({"title": 3, "query": ""}), "Slide 1: its title and its query have to be texts"),
        (written({"title": " ", "query": ""}), "Slide 1: its title needs from 1 to 80 letters"),
        (written({"title": "x" * (LONGEST_TITLE + 1), "query": ""}), "from 1 to 80 letters"),
        (written({"title": "x", "query": "lyer=1"}), "Slide 1: The link has 'lyer'.* layer"),
        (written({"title": "x", "query": "https://evil.example/"}), "Slide 1: .*does not know"),
        (
            written({"title": "x", "query": "a=" + "b" * 5000}),
            "Slide 1: The link has 5,002 letters",
        ),
        (
            written({"title": "\ud800", "query": ""}),
            "Slide 1: it has letters that can't be written",
        ),
        (" " * 500_001, "too large: 500,000 letters is the most"),
    ],
)
def test_what_is_wrong_is_named(text: str, words: str) -> None:
    with pytest.raises(hookviz.HookVizError, match=words):
        read_slides(text)
