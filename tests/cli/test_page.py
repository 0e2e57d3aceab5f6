"""``hookviz page``: the explorer of an image as one file."""

import json
from pathlib import Path

from hookviz.images.samples import samples
from tests.cli.command import mistake, output_of

STAR = next(each.path for each in samples() if each.name == "star")
LAST = "stage3.second.conv"


def test_it_saves_a_page_and_says_how_large_it_is(tmp_path: Path) -> None:
    file = tmp_path / "star.html"
    said = output_of("page", STAR, "--layers", LAST, "-o", file)
    assert said == f"{file}: 1 layer of ShapesNet, {file.stat().st_size / 1e3:.1f} kB.\n"
    assert file.read_text("utf-8").startswith("<!doctype html>")


def test_sums_and_an_atlas_are_kept_and_json_is_printed(tmp_path: Path) -> None:
    file = tmp_path / "star.html"
    options = ("--layers", LAST, "--sums", LAST, "--atlas", "assets/atlases/shapesnet.atlas")
    said = json.loads(output_of("page", STAR, *options, "-o", file, "--json"))
    assert said["out"] == str(file)
    assert said["bytes"] == file.stat().st_size
    assert said["layers"] == [LAST]
    text = file.read_text("utf-8")
    assert all(f'id="{name}-0"' in text for name in ("input", "weights", "excites"))


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    file = tmp_path / "star.html"
    assert "--most-bytes" in mistake("page", STAR, "--most-bytes", 1000, "-o", file)
    assert ".html" in mistake("page", STAR, "-o", tmp_path / "star.pdf")
    assert "Did you mean" in mistake("page", STAR, "--layers", "stem.first.conf", "-o", file)
    assert "layer in this page" in mistake(
        "page", STAR, "--layers", LAST, "--sums", "stem.first.conv", "-o", file
    )
    assert not file.exists()
