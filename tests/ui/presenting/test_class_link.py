import re
from urllib.parse import unquote, urlencode
from xml.etree import ElementTree

import zxingcpp
from PIL import Image, ImageDraw

from hookviz.serving.short_links import short_links
from hookviz.ui.presenting.class_link import link_for, link_into_class

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
    into_class = link_into_class("https://hookviz.example.org/lab/?follow=ABCDEF")
    assert into_class.link == "https://hookviz.example.org/lab/?follow=ABCDEF"
    assert decoded(into_class.picture) == into_class.link
    assert not into_class.is_code
