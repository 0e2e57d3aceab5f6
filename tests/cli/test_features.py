import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import hookviz
from tests.cli.command import invoke, mistake, output_of, save_pictures


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


def test_what_does_not_work(photos: list[Path]) -> None:
    assert ".parquet" in mistake("features", photos[0], "-o", "vectors.csv")
    assert "Did you mean" in mistake("features", photos[0], "--layer", "stage3.second.con")
    assert "no.png" in mistake("features", "no.png")
