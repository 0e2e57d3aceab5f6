import csv
import json
from pathlib import Path

import numpy as np
import pytest

import hookviz
from tests.cli.command import invoke, mistake, output_of, save_pictures

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


def test_what_does_not_work(photos: Path) -> None:
    assert "there are 2" in mistake("similarity", photos / "more")
    assert "ends in none of .csv" in mistake("similarity", photos, "-o", "m.txt")
    assert "called 'sten'. Did you mean 'stem'" in mistake("similarity", photos, "--layers", "sten")
    assert "'stage9'" in mistake("similarity", photos, *LAYERS, "--match", "stage9")
    (photos / "broken.png").write_bytes(b"no image")
    run = invoke("similarity", photos, *LAYERS)
    assert run.exit_code == 2
    assert "broken.png" in run.stderr
    assert "5 images" in run.stdout
