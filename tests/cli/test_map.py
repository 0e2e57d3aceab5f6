"""``hookviz map``: the whole network as a file for a paper."""

import json
from pathlib import Path
from xml.etree import ElementTree

from PIL import Image

from hookviz.images.samples import samples
from tests.cli.command import mistake, output_of

STAR = next(each.path for each in samples() if each.name == "star")


def test_it_draws_svg_and_png_and_says_how_large(tmp_path: Path) -> None:
    file = tmp_path / "map.svg"
    said = output_of("map", STAR, "--depth", 1, "-o", file)
    assert said == f"{file}: 7 parts of ShapesNet, {file.stat().st_size / 1e3:.1f} kB.\n"
    assert ElementTree.parse(file).getroot().tag.endswith("svg")  # noqa: S314 - our own
    picture = tmp_path / "map.PNG"
    row = json.loads(output_of("map", STAR, "--dpi", 50, "-o", picture, "--json"))
    assert row["layers"][:2] == ["stem.first.conv", "stem.first.norm"]
    with Image.open(picture) as opened:
        assert opened.format == "PNG"


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    assert ".svg" in mistake("map", STAR, "-o", tmp_path / "map.html")
    assert "--depth" in mistake("map", STAR, "--depth", 0, "-o", tmp_path / "map.svg")
    assert "can't be written" in mistake("map", STAR, "-o", tmp_path / "no" / "map.svg")
