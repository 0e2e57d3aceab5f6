import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import hookviz
from tests.cli.command import mistake, output_of, save_pictures

LAYER = "stem.first.conv"


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    return save_pictures(tmp_path, "a.png", "b.png")


def test_two_images_in_one_model(pictures: list[Path], tmp_path: Path) -> None:
    model = hookviz.load_model("shapesnet")
    a, b = (hookviz.capture(model, path, size=64) for path in pictures)
    expected = hookviz.compare(a, b)
    out = tmp_path / "new" / "difference.png"
    said = json.loads(output_of("compare", *pictures, "--size", 64, "-o", out, "--json"))
    assert [each["layer"] for each in said["layers"]] == list(expected)
    for each, compared in zip(said["layers"], expected.values(), strict=True):
        numbers = (each["correlation"], each["mean_absolute_difference"], each["cosine"])
        assert numbers == compared.channels.means
        assert each["most_changed"] == compared.channels.most_changed[0]
        assert tuple(each["shape"]) == tuple(compared.a.values.shape)
    channels = expected[LAYER].channels
    rows = said["channels"]["most_changed"]
    assert [row["channel"] for row in rows] == channels.most_changed.tolist()
    assert rows[0]["cosine"] == channels.cosine[channels.most_changed[0]]
    assert (said["a"]["image"], said["b"]["image"]) == tuple(map(str, pictures))
    assert said["left_out"] == {}
    assert out.read_bytes() == expected.grid().png()


def test_in_words_with_the_most_changed_channels(pictures: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "difference.pdf"
    chosen = ("--layer", "stage1", "--top", 2, "--size", 64)
    said = output_of("compare", *pictures, *chosen, "-o", out).splitlines()
    assert said[0] == f"A: {pictures[0]} in shapesnet (pretrained), input 3×64×64"
    assert said[2].startswith("layer   shape     correlation  difference  cosine  most changed")
    assert said[3].split()[:2] == ["stage1", "48×16×16"]
    assert said[4] == "stage1, most changed channels of 48:"
    assert len(said) == 9
    assert said[8].startswith(f"{out}: stage1, B − A. Blue is below zero")
    assert out.read_bytes()[:4] == b"%PDF"


def test_one_image_in_two_models_and_in_two_layers(pictures: list[Path], tmp_path: Path) -> None:
    other = ("--other-weights", "random", "--size", 64, "--json")
    said = json.loads(output_of("compare", pictures[0], *other))
    assert (said["a"]["weights"], said["b"]["weights"]) == ("pretrained", "random")
    assert said["a"]["image"] == said["b"]["image"]
    assert len(said["layers"]) == 10
    assert said["out"] is None
    out = tmp_path / "d.png"
    pair = ("--layer", "stage1.first.conv", "--other-layer", "stage1.second.conv")
    said = output_of("compare", pictures[0], *pair, "--top", 4, "--size", 64, "-o", out)
    assert "stage1.first.conv and stage1.second.conv  48×16×16" in said
    with Image.open(io.BytesIO(out.read_bytes())) as picture:
        assert np.asarray(picture.convert("RGB")).std() > 0


def test_what_does_not_work(pictures: list[Path], tmp_path: Path) -> None:
    assert "nothing to compare" in mistake("compare", pictures[0])
    assert "`hookviz similarity` compares" in mistake("compare", tmp_path)
    assert "There is no image file" in mistake("compare", pictures[0], tmp_path / "gone.png")
    assert "ends in none of .png" in mistake("compare", *pictures, "-o", "d.txt")
    assert "needs a --layer" in mistake("compare", *pictures, "--other-layer", LAYER)
    assert "Did you mean 'stem'" in mistake("compare", *pictures, "--layer", "sten")
    pair = ("--layer", LAYER, "--other-layer", "stage1.first.conv", "--size", 64)
    said = mistake("compare", *pictures, *pair)
    assert "A has 32×32×32 and B 48×16×16 in stage1.first.conv" in said
    assert f"A's {LAYER} and B's {LAYER}" in said
    assert "A's stage1.second.conv and B's stage1.first.conv" in said
