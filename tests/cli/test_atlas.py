import json
from pathlib import Path

import pytest

import hookviz
from hookviz.cli.atlas import in_words
from tests.cli.command import in_terminal, invoke, mistake, output_of, save_pictures


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    save_pictures(tmp_path / "photos", "cats/a.png", "cats/b.png", "dogs/c.png")
    return tmp_path / "photos"


def test_a_folder_becomes_an_atlas(photos: Path) -> None:
    out = photos.parent / "a.atlas"
    said = output_of("atlas", photos, "--size", 32, "--top", 2, "-o", out)
    assert said.startswith(f"{out}: 848 channels of 10 layers, 3 images, ")
    atlas = hookviz.load_atlas(out)
    assert atlas.belongs_to(hookviz.load_model("shapesnet"))
    assert (dict(atlas.classes), atlas.top) == ({"cats": 2, "dogs": 1}, 2)
    again = json.loads(output_of("atlas", photos, "--size", 32, "--top", 2, "-o", out, "--json"))
    assert (again["channels"], again["tallied"], again["left_out"]) == (848, 3, 0)


def test_a_broken_image_is_told_and_the_rest_go_on(photos: Path) -> None:
    (photos / "dogs" / "d.png").write_bytes(b"nothing")
    result = invoke("atlas", photos, "--size", 32, "-o", photos.parent / "a.atlas", "--json")
    assert result.exit_code == 2
    assert "dogs/d.png: " in result.stderr
    assert json.loads(result.stdout)["left_out"] == 1


def test_a_terminal_is_told_how_far_it_is(photos: Path) -> None:
    run = in_terminal("atlas", photos, "--size", 32, "-o", photos.parent / "a.atlas")
    assert run.returncode == 0
    assert "Images 0 of 3" in run.stderr
    assert run.stderr.endswith("\r\x1b[K")
    half = hookviz.AtlasProgress(cutting=False, done=320, images=1000, left_out=2, per_second=12.4)
    assert in_words(half) == "Images 320 of 1,000, 12.4 a second, 55 s left, 2 left out"
    begun = hookviz.AtlasProgress(cutting=True, done=0, images=9, left_out=0, per_second=0.0)
    assert in_words(begun) == "Patches of images 0 of 9"


def test_what_does_not_work(photos: Path) -> None:
    out = photos.parent / "a.atlas"
    assert "photos.atlas" in mistake("atlas", photos, "-o", photos.parent / "a")
    assert "gives no image" in mistake("atlas", photos.parent / "photos" / "*.tif", "-o", out)
    assert "Missing option" in mistake("atlas", photos)
    output_of("atlas", photos, "--size", 32, "-o", out)
    assert "another atlas: top is 9, not 3" in mistake(
        "atlas", photos, "--size", 32, "--top", 3, "-o", out
    )
    output_of("atlas", photos, "--size", 32, "--top", 3, "-o", out, "--overwrite")


def test_the_old_name_of_an_option_works_and_says_so(photos: Path) -> None:
    out = photos.parent / "a.atlas"
    output_of("atlas", photos, "--size", 32, "-o", out)
    result = invoke("atlas", photos, "--size", 32, "--top", 3, "-o", out, "--anew")
    assert result.exit_code == 0
    assert "--anew is now called --overwrite; the old name goes in HookViz 2.0." in result.stderr
    assert hookviz.load_atlas(out).top == 3
    assert "--anew" not in output_of("atlas", "--help")


def test_layers_are_named_with_commas_or_by_their_kind(photos: Path) -> None:
    out = photos.parent / "a.atlas"
    options = ("--size", 32, "-o", out, "--overwrite", "--layers")
    output_of("atlas", photos, *options, "stem.first, stage3.second.conv")
    layers = hookviz.load_atlas(out).layers
    assert list(layers) == ["stem.first", "stage3.second.conv"]
    assert "'stage3.second.conv'" in mistake("atlas", photos, *options, "stage3.second.cnov")
    output_of("atlas", photos, *options, "conv")
    assert len(hookviz.load_atlas(out).layers) == 10


def test_pages_are_written_beside_it_and_of_an_atlas_that_is_there(photos: Path) -> None:
    out, pages = photos.parent / "a.atlas", photos.parent / "pages"
    options = ("atlas", photos, "--size", 32, "-o", out, "--layers", "stem.first.conv")
    output_of(*options)
    assert output_of(*options, "--pages", pages).endswith(f"{pages / 'index.html'}: its pages.\n")
    assert (pages / "layers" / "0.html").is_file()
    assert "has an atlas's pages already" in mistake(*options, "--pages", pages)
    again = json.loads(output_of(*options, "--pages", pages, "--overwrite", "--json"))
    assert again["pages"] == str(pages)
