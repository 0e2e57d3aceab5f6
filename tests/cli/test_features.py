import json
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

import hookviz
from hookviz import _MODULES
from tests.cli.command import invoke, mistake, output_of, save_pictures
from tests.explaining.test_image_features import noisy
from tests.plain_hooks import every_output


@pytest.fixture
def photos(tmp_path: Path) -> list[Path]:
    paths = save_pictures(tmp_path / "photos", "a.png", "b.png", "c.png")
    paths[2].write_bytes(paths[0].read_bytes())  # the same picture twice
    return paths


def test_a_folder_becomes_vectors_in_either_format(photos: list[Path]) -> None:
    out = photos[0].parent / "out" / "vectors.npz"
    said = output_of("features", photos[0].parent, "--size", 64, "-o", out)
    assert said.startswith("stage3.relu_out: 128 numbers for each image")
    first = next(line for line in said.splitlines() if line.startswith(str(photos[0])))
    assert first.split() == [str(photos[0]), str(photos[2]), "1.0000"]
    model = hookviz.load_model("shapesnet")
    with np.load(out) as saved:
        assert saved["names"].tolist() == list(map(str, photos))
        for path, vector in zip(photos, saved["vectors"], strict=True):
            cap = hookviz.capture(model, path, "stage3.relu_out", size=64)
            expected = cap["stage3.relu_out"].values.mean((1, 2))
            np.testing.assert_allclose(vector, expected, rtol=1e-5, atol=1e-6)
    out = photos[0].parent / "vectors.parquet"
    output_of("features", *photos[:2], "--layer", "stage1.first.conv", "--size", 64, "-o", out)
    read = pq.read_table(out)
    assert read["name"].to_pylist() == list(map(str, photos[:2]))
    assert np.shape(read["vector"].to_pylist()) == (2, 48)


def test_a_broken_image_is_told_and_the_rest_go_on(photos: list[Path]) -> None:
    photos[1].write_bytes(b"not an image")
    result = invoke("features", *photos, "--size", 64, "--json")
    assert result.exit_code == 2
    assert "b.png" in result.stderr
    found = json.loads(result.stdout)
    assert found["numbers"] == 128
    assert list(found["nearest"]) == [str(photos[0]), str(photos[2])]
    assert list(found["failed"]) == [str(photos[1])]


def test_features_refuses_other_endings_layers_and_files(photos: list[Path]) -> None:
    assert ".parquet" in mistake("features", photos[0], "-o", "vectors.csv")
    assert "Did you mean" in mistake("features", photos[0], "--layer", "stage3.second.con")
    assert "no.png" in mistake("features", "no.png")


LAYER = "stage3"


@pytest.fixture
def nested_photos(tmp_path: Path) -> list[Path]:
    """Pictures in a folder of folders, the last the same as the first."""
    names = ("a.png", "dogs/b.png", "dogs/small/c.png", "d.png")
    paths = save_pictures(tmp_path / "photos", *names)
    paths[3].write_bytes(paths[0].read_bytes())
    return paths


@pytest.fixture
def index(nested_photos: list[Path]) -> Path:
    path = nested_photos[0].parent / "index.parquet"
    made = invoke("features", nested_photos[0].parent, "--layer", LAYER, "--size", 64, "-o", path)
    assert made.exit_code == 0, made.output
    return path


def test_the_nearest_are_those_of_torchs_cosine_similarity(
    index: Path, nested_photos: list[Path]
) -> None:
    said = json.loads(output_of("similar", nested_photos[1], index, "--json"))
    assert (said["model"], said["layer"]) == ("shapesnet", LAYER)
    model = hookviz.load_model("shapesnet")
    inputs = [hookviz.prepare_input(model, photo, size=64).tensor for photo in nested_photos]
    seen = [every_output(model.network, each)[LAYER][0].mean((2, 3))[0] for each in inputs]
    expected = F.cosine_similarity(torch.stack(seen), seen[1][None]).numpy()
    order = np.argsort(-expected, kind="stable")
    assert said["nearest"][0][0] == str(nested_photos[1])
    assert {name for name, _ in said["nearest"]} == {str(photo) for photo in nested_photos}
    alike = [share for _, share in said["nearest"]]
    np.testing.assert_allclose(alike, expected[order], atol=1e-5)
    same = dict(said["nearest"])
    assert same[str(nested_photos[0])] == same[str(nested_photos[3])]  # to the last digit
    names = [name for name, _ in said["nearest"]]
    assert names.index(str(nested_photos[0])) < names.index(
        str(nested_photos[3])
    )  # which comes first there
    lines = output_of("similar", nested_photos[0], index, "-n", 2).splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["1", str(nested_photos[0]), "1.0000"],
        ["2", str(nested_photos[3]), "1.0000"],
    ]
    table = pq.read_table(index)
    frame = table.to_pandas()
    assert frame["path"].tolist() == ["a.png", "d.png", "dogs/b.png", "dogs/small/c.png"]
    assert np.stack(frame["vector"]).shape == (4, 128)
    about = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    assert about["hookviz"] == hookviz.__version__
    assert about["digest"] == hookviz.load_model("shapesnet").digest
    assert (about["layer"], about["size"], about["whole"]) == (LAYER, "64", "False")
    assert json.loads(about["preprocess"])["crop"] == 128


def test_weights_of_a_file_have_to_be_named(tmp_path: Path, nested_photos: list[Path]) -> None:
    model = hookviz.load_model("shapesnet", "random")
    weights, index = tmp_path / "mine.safetensors", tmp_path / "index.parquet"
    save_file(dict(model.network.state_dict()), weights)
    output_of("features", *nested_photos[:2], "--weights", weights, "-o", index)
    assert "'mine.safetensors': name that file with --weights" in mistake(
        "similar", nested_photos[0], index
    )
    assert str(nested_photos[0]) in output_of(
        "similar", nested_photos[0], index, "--weights", weights
    )
    said = mistake("similar", nested_photos[0], index, "--weights", "pretrained")
    assert "vectors of two networks can't be compared" in said
    assert model.digest[:12] in said


def test_a_module_that_an_index_names_is_not_imported(
    tmp_path: Path, nested_photos: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trap.py").write_text("def make():\n    raise SystemExit('it ran')\n")
    monkeypatch.chdir(tmp_path)
    index = tmp_path / "index.parquet"
    found = hookviz.extract_features(hookviz.load_model("shapesnet"), nested_photos[:2])
    object.__setattr__(found, "model", "trap:make")
    found.save(index)
    assert "no model of the catalog" in mistake("similar", nested_photos[0], index)
    assert "trap" not in sys.modules


def test_similar_refuses_what_is_no_index_or_no_image(
    index: Path, nested_photos: list[Path], tmp_path: Path
) -> None:
    assert "There is no index" in mistake("similar", nested_photos[0], tmp_path / "gone.parquet")
    assert "Did you mean 'index.parquet'" in mistake(
        "similar", nested_photos[0], index.with_name("indx.parquet")
    )
    assert "no Parquet file" in mistake("similar", nested_photos[0], nested_photos[1])
    assert "no.png" in mistake("similar", "no.png", index)
    assert "FeatureIndex" in _MODULES


@pytest.fixture
def class_photos(tmp_path: Path) -> Path:
    noisy(tmp_path / "photos" / "red", (180, 60, 60), 6, 0, 20)
    noisy(tmp_path / "photos" / "green", (60, 160, 60), 5, 1, 20)
    return tmp_path / "photos"


def test_classes_that_are_easy_to_tell_apart(class_photos: Path) -> None:
    chosen = ("--layer", "stage1", "--size", 64, "--folds", 3)
    said = output_of("classify", class_photos, *chosen).splitlines()
    assert said[0].startswith("stage1: 100.0 % right, ± ")
    assert "over 3 folds; always the most frequent class: " in said[0]
    assert [line.split() for line in said[1:]] == [
        ["class", "images", "right", "as", "green", "as", "red"],
        ["green", "5", "100.0", "%", "5", "0"],
        ["red", "6", "100.0", "%", "0", "6"],
    ]
    found = json.loads(output_of("classify", class_photos, *chosen, "--json"))
    python = hookviz.linear_probe(
        hookviz.load_model("shapesnet"), class_photos, "stage1", size=64, folds=3
    )
    assert found["accuracies"] == python.accuracies.tolist()
    assert found["baseline"] == python.baseline
    assert found["classes"] == {"green": 5, "red": 6}
    assert found["confusion"] == [[5, 0], [0, 6]]


def test_classify_reports_a_broken_image_and_refuses_too_many_folds(class_photos: Path) -> None:
    assert "6 of each class at least: add 1" in mistake("classify", class_photos, "--folds", 6)
    (class_photos / "red" / "broken.png").write_bytes(b"no image")
    run = invoke("classify", class_photos, "--size", 64)
    assert run.exit_code == 2
    assert "broken.png" in run.stderr
    assert "over 5 folds" in run.stdout
    assert run.stdout.splitlines()[-1].split()[:2] == ["red", "6"]
