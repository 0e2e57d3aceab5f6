import json
from pathlib import Path

import pytest

import hookviz
from tests.cli.command import invoke, mistake, output_of
from tests.explaining.test_image_features import noisy


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    noisy(tmp_path / "photos" / "red", (180, 60, 60), 6, 0, 20)
    noisy(tmp_path / "photos" / "green", (60, 160, 60), 5, 1, 20)
    return tmp_path / "photos"


def test_classes_that_are_easy_to_tell_apart(photos: Path) -> None:
    chosen = ("--layer", "stage1", "--size", 64, "--folds", 3)
    said = output_of("classify", photos, *chosen).splitlines()
    assert said[0].startswith("stage1: 100.0 % right, ± ")
    assert "over 3 folds; always the most frequent class: " in said[0]
    assert [line.split() for line in said[1:]] == [
        ["class", "images", "right", "as", "green", "as", "red"],
        ["green", "5", "100.0", "%", "5", "0"],
        ["red", "6", "100.0", "%", "0", "6"],
    ]
    found = json.loads(output_of("classify", photos, *chosen, "--json"))
    python = hookviz.linear_probe(
        hookviz.load_model("shapesnet"), photos, "stage1", size=64, folds=3
    )
    assert found["accuracies"] == python.accuracies.tolist()
    assert found["baseline"] == python.baseline
    assert found["classes"] == {"green": 5, "red": 6}
    assert found["confusion"] == [[5, 0], [0, 6]]


def test_what_does_not_work(photos: Path) -> None:
    assert "6 of each class at least: add 1" in mistake("classify", photos, "--folds", 6)
    (photos / "red" / "broken.png").write_bytes(b"no image")
    run = invoke("classify", photos, "--size", 64)
    assert run.exit_code == 2
    assert "broken.png" in run.stderr
    assert "over 5 folds" in run.stdout
    assert run.stdout.splitlines()[-1].split()[:2] == ["red", "6"]
