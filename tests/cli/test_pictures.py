import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PIL import Image

import hookviz
from hookviz.images.samples import samples
from tests.cli.command import invoke, mistake, output_of, save_pictures


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return save_pictures(tmp_path / "pictures", "a.png")[0]


def test_one_image_becomes_the_grid_that_the_library_draws(image: Path, tmp_path: Path) -> None:
    out = tmp_path / "grid.png"
    options = ("--layer", "stage2.first.conv", "--sort", "max", "--top", 16, "--scale", "symmetric")
    printed = output_of("grid", image, *options, "--colormap", "coolwarm", "-o", out)
    cap = hookviz.capture(hookviz.load_model("shapesnet"), image, "stage2.first.conv")
    grid = hookviz.make_grid(
        cap["stage2.first.conv"], sort="max", top=16, scale="symmetric", colormap="coolwarm"
    )
    assert out.read_bytes() == grid.png()
    assert printed == f"{out}: stage2.first.conv. {grid.legend}\n"


def test_the_first_convolution_is_the_default_and_others_have_names(
    image: Path, tmp_path: Path
) -> None:
    def row(*options: object) -> dict[str, Any]:
        out = tmp_path / "grid.png"
        [answer] = json.loads(output_of("grid", image, *options, "-o", out, "--json"))
        return dict(answer)

    first = row()
    assert (first["layer"], first["shape"]) == ("stem.first.conv", [32, 64, 64])
    assert first["channels"] == list(range(32))
    assert (first["model"], first["weights"]) == ("shapesnet", "pretrained")
    small = row("--size", 64, "--weights", "random")
    assert (small["shape"], small["weights"]) == ([32, 32, 32], "random")
    assert row("--whole")["shape"] == [32, 64, 86]  # 40×30 pixels, the shorter side at 128
    assert row("--layer", "stage1.relu")["layer"] == "stage1.relu"
    block = row("--layer", "stage1")
    assert (block["layer"], block["shape"]) == ("stage1", [48, 32, 32])
    out = ("-o", tmp_path / "grid.png")
    assert "Did you mean 'stage1.relu'" in mistake("grid", image, "--layer", "stage1.relu#1", *out)
    said = mistake("grid", image, "--layer", "head", *out)
    assert "head puts out 20 numbers, no maps" in said
    assert "hookviz layers --kind maps" in said
    assert "extract_features" in said


@pytest.mark.parametrize(("name", "begins"), [("page.pdf", b"%PDF"), ("page.SVG", b"<?xml")])
def test_a_page_for_print(image: Path, tmp_path: Path, name: str, begins: bytes) -> None:
    output_of("grid", image, "--top", 4, "-o", tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begins)


def test_a_folder_becomes_a_folder_and_broken_files_are_reported(tmp_path: Path) -> None:
    save_pictures(tmp_path / "in", "a.png", "b.jpg")
    (tmp_path / "in" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    out = tmp_path / "out"
    result = invoke("grid", tmp_path / "in", "missing.png", "--top", 2, "-o", out)
    assert result.exit_code == 2
    assert sorted(path.name for path in out.iterdir()) == ["a.png", "b.png"]
    assert [line.partition(": ")[0] for line in result.stderr.splitlines()] == ["hookviz"] * 2
    assert "broken.png" in result.stderr
    assert "missing.png" in result.stderr
    assert len(result.stdout.splitlines()) == 2
    rows = json.loads(invoke("grid", tmp_path / "in", "-o", out, "--json").stdout)
    assert ["error" in row for row in rows] == [False, False, True]


def test_a_page_of_one_of_many_images_says_which(tmp_path: Path) -> None:
    paths = save_pictures(tmp_path / "in", "a.png", "b.png")
    output_of("grid", *paths, "--top", 2, "--figure", "-o", tmp_path / "out")
    cap = hookviz.capture(hookviz.load_model("shapesnet"), paths[1], "stem.first.conv")
    grid = hookviz.make_grid(cap["stem.first.conv"], top=2)
    page = grid.figure_bytes("png", title="b.png · stem.first.conv")
    assert (tmp_path / "out" / "b.png").read_bytes() == page
    with Image.open(io.BytesIO(page)) as printed:
        assert printed.info["dpi"][0] == pytest.approx(300, abs=0.1)


def test_grid_refuses_in_one_line(image: Path, tmp_path: Path) -> None:
    out = tmp_path / "grid.png"
    images = (image, *save_pictures(tmp_path, "other.png"))
    for arguments, text in (
        ((image, "--layer", "stem.frist.conv"), "Did you mean 'stem.first.conv'"),
        ((image, "--model", "shapenet"), "Did you mean 'shapesnet'"),
        ((image, "--weights", "nowhere.pth"), "nowhere.pth"),
        ((image, "--device", "gpu"), "gpu"),
        ((image, "--half", "--device", "cpu"), "precision"),
        ((image, "--labels", "no-labels.txt"), "no-labels.txt"),
        ((image, "--size", 9999), "it can be 1 to"),
        ((image, "--top", 0), "--top"),
        ((image, "--sort", "size"), "'variance'"),
        ((tmp_path / "no.png",), "no.png"),
        (images, "2 images don't go into one file"),
    ):
        assert text in mistake("grid", *arguments, "-o", out), arguments
        assert not out.exists()
    assert "is an image to be read" in mistake("grid", image, "-o", image.parent)


STAR = next(each.path for each in samples() if each.name == "star")


def test_map_is_svg_or_png_and_says_how_large(tmp_path: Path) -> None:
    file = tmp_path / "map.svg"
    said = output_of("map", STAR, "--depth", 1, "-o", file)
    assert said == f"{file}: 7 parts of ShapesNet, {file.stat().st_size / 1e3:.1f} kB.\n"
    assert ElementTree.parse(file).getroot().tag.endswith("svg")  # noqa: S314 - our own
    picture = tmp_path / "map.PNG"
    row = json.loads(output_of("map", STAR, "--dpi", 50, "-o", picture, "--json"))
    assert row["layers"][:2] == ["stem.first.conv", "stem.first.norm"]
    with Image.open(picture) as opened:
        assert opened.format == "PNG"


def test_map_refuses_in_one_line(tmp_path: Path) -> None:
    assert ".svg" in mistake("map", STAR, "-o", tmp_path / "map.html")
    assert "--depth" in mistake("map", STAR, "--depth", 0, "-o", tmp_path / "map.svg")
    assert "can't be written" in mistake("map", STAR, "-o", tmp_path / "no" / "map.svg")


LAST = "stage3.second.conv"


def test_page_is_saved_and_says_how_large_it_is(tmp_path: Path) -> None:
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


def test_page_refuses_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "star.html"
    assert "--most-bytes" in mistake("page", STAR, "--most-bytes", 1000, "-o", file)
    assert ".html" in mistake("page", STAR, "-o", tmp_path / "star.pdf")
    assert "Did you mean" in mistake("page", STAR, "--layers", "stem.first.conf", "-o", file)
    assert "layer in this page" in mistake(
        "page", STAR, "--layers", LAST, "--sums", "stem.first.conv", "-o", file
    )
    assert not file.exists()
