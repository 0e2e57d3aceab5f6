import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import hookviz
from tests.cli.command import invoke, mistake, output_of, save_pictures

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


def test_compare_refuses_what_can_not_be_compared(pictures: list[Path], tmp_path: Path) -> None:
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


LAYERS = ("--layers", "stem,stage1", "--size", 64)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    save_pictures(tmp_path / "photos", "a.png", "b.png", "more/c.png", "more/d.png", "e.png")
    return tmp_path / "photos"


def test_it_is_what_python_gives(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "cka.csv"
    match = ("--match", "stem=stage2", "-o", out, "--json")
    options = ("--other-weights", "random", "--other-layers", "stage2", *LAYERS)
    said = json.loads(output_of("similarity", photos, *options, *match))
    a, b = (hookviz.load_model("shapesnet", weights) for weights in ("pretrained", "random"))
    expected = hookviz.similarity(
        a, b, sorted(photos.rglob("*.png")), ["stem", "stage1"], "stage2", size=64
    )
    np.testing.assert_allclose(said["cka"], expected.cka, atol=1e-12)
    assert said["digests"] == [a.digest, b.digest]
    assert (said["layers"], said["other_layers"]) == (["stem", "stage1"], ["stage2"])
    assert (said["images"], said["unbiased"], said["failed"]) == (5, True, {})
    biased = json.loads(output_of("similarity", photos, *options, "--biased", "--json"))
    assert not biased["unbiased"]
    assert np.mean(biased["cka"]) > np.mean(said["cka"])  # the paper's own estimate
    assert said["matches"]["channels"] == expected.matches("stem", "stage2").channels.tolist()
    head, *rows = csv.reader(out.read_text().splitlines())
    assert head == ["layer", "stage2"]
    np.testing.assert_array_equal([[float(row[1])] for row in rows], said["cka"])


def test_in_words_by_default_a_model_with_itself(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "cka.png"
    options = ("--other-layers", "stem,stage1", "--match", "stem", "-o", out)
    said = output_of("similarity", photos, *LAYERS, *options).splitlines()
    assert said[0].startswith("A: shapesnet (pretrained), B: shapesnet (pretrained), 5 images. ")
    assert "few" in said[0]
    assert said[2].split() == ["stem", "stem", "1.00"]
    assert said[6].split() == ["layer", "of", "A", "1", "2"]
    assert said[8].split()[2] == "1.00"
    assert said[10] == "channels of stem (A) and stem (B):"
    assert [line.split()[2] for line in said[12:]] == ["1.00"] * 32
    assert out.read_bytes()[1:4] == b"PNG"


def test_similarity_refuses_one_image_and_unknown_files(photos: Path) -> None:
    assert "there are 2" in mistake("similarity", photos / "more")
    assert "ends in none of .csv" in mistake("similarity", photos, "-o", "m.txt")
    assert "called 'sten'. Did you mean 'stem'" in mistake("similarity", photos, "--layers", "sten")
    assert "'stage9'" in mistake("similarity", photos, *LAYERS, "--match", "stage9")
    (photos / "broken.png").write_bytes(b"no image")
    run = invoke("similarity", photos, *LAYERS)
    assert run.exit_code == 2
    assert "broken.png" in run.stderr
    assert "5 images" in run.stdout
