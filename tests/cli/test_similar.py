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
from tests.plain_hooks import every_output

LAYER = "stage3"


@pytest.fixture
def photos(tmp_path: Path) -> list[Path]:
    """Pictures in a folder of folders, the last the same as the first."""
    names = ("a.png", "dogs/b.png", "dogs/small/c.png", "d.png")
    paths = save_pictures(tmp_path / "photos", *names)
    paths[3].write_bytes(paths[0].read_bytes())
    return paths


@pytest.fixture
def index(photos: list[Path]) -> Path:
    path = photos[0].parent / "index.parquet"
    made = invoke("features", photos[0].parent, "--layer", LAYER, "--size", 64, "-o", path)
    assert made.exit_code == 0, made.output
    return path


def test_the_nearest_are_those_of_torchs_cosine_similarity(index: Path, photos: list[Path]) -> None:
    said = json.loads(output_of("similar", photos[1], index, "--json"))
    assert (said["model"], said["layer"]) == ("shapesnet", LAYER)
    model = hookviz.load_model("shapesnet")
    inputs = [hookviz.prepare(model, photo, size=64).tensor for photo in photos]
    seen = [every_output(model.network, each)[LAYER][0].mean((2, 3))[0] for each in inputs]
    expected = F.cosine_similarity(torch.stack(seen), seen[1][None]).numpy()
    order = np.argsort(-expected, kind="stable")
    assert said["nearest"][0][0] == str(photos[1])
    assert {name for name, _ in said["nearest"]} == {str(photo) for photo in photos}
    alike = [share for _, share in said["nearest"]]
    np.testing.assert_allclose(alike, expected[order], atol=1e-5)
    same = dict(said["nearest"])
    assert same[str(photos[0])] == same[str(photos[3])]  # to the last digit
    names = [name for name, _ in said["nearest"]]
    assert names.index(str(photos[0])) < names.index(str(photos[3]))  # which comes first there
    lines = output_of("similar", photos[0], index, "-n", 2).splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["1", str(photos[0]), "1.0000"],
        ["2", str(photos[3]), "1.0000"],
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


def test_weights_of_a_file_have_to_be_named(tmp_path: Path, photos: list[Path]) -> None:
    model = hookviz.load_model("shapesnet", "random")
    weights, index = tmp_path / "mine.safetensors", tmp_path / "index.parquet"
    save_file(dict(model.network.state_dict()), weights)
    output_of("features", *photos[:2], "--weights", weights, "-o", index)
    assert "'mine.safetensors': name that file with --weights" in mistake(
        "similar", photos[0], index
    )
    assert str(photos[0]) in output_of("similar", photos[0], index, "--weights", weights)
    said = mistake("similar", photos[0], index, "--weights", "pretrained")
    assert "vectors of two networks can't be compared" in said
    assert model.digest[:12] in said


def test_a_module_that_an_index_names_is_not_imported(
    tmp_path: Path, photos: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trap.py").write_text("def make():\n    raise SystemExit('it ran')\n")
    monkeypatch.chdir(tmp_path)
    index = tmp_path / "index.parquet"
    found = hookviz.extract_features(hookviz.load_model("shapesnet"), photos[:2])
    object.__setattr__(found, "model", "trap:make")
    found.save(index)
    assert "no model of the catalog" in mistake("similar", photos[0], index)
    assert "trap" not in sys.modules


def test_mistakes(index: Path, photos: list[Path], tmp_path: Path) -> None:
    assert "There is no index" in mistake("similar", photos[0], tmp_path / "gone.parquet")
    assert "Did you mean 'index.parquet'" in mistake(
        "similar", photos[0], index.with_name("indx.parquet")
    )
    assert "no Parquet file" in mistake("similar", photos[0], photos[1])
    assert "no.png" in mistake("similar", "no.png", index)
    assert "FeatureIndex" in _MODULES
