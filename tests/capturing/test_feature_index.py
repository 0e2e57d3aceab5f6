"""An index of vectors: what it finds, what is refused, and which files it can lead to."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
import torch.nn.functional as F

import hookviz
from hookviz.capturing.feature_index import FeatureIndex
from hookviz.types import Model, Preprocess
from tests.capturing.test_feature_files import parquet, table
from tests.capturing.test_feature_vectors import made
from tests.networks import Tiny, as_model, seeded
from tests.pictures import picture


@pytest.fixture
def photos(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "photos" / name for name in ("a.png", "b.png", "in/c.png")]
    for seed, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        picture(seed).save(path)
    return paths


@pytest.fixture
def file(tiny: Model, photos: list[Path]) -> Path:
    """An index beside the folder of photographs."""
    path = photos[0].parent.parent / "index.parquet"
    hookviz.extract_features(tiny, photos, "conv2", size=24).save(path)
    return path


def test_what_is_loaded_is_what_was_saved_and_finds_what_torch_finds(
    tiny: Model, photos: list[Path], file: Path
) -> None:
    found, index = hookviz.extract_features(tiny, photos, "conv2", size=24), FeatureIndex.load(file)
    np.testing.assert_array_equal(index.features.vectors, found.vectors)
    assert index.paths == ("photos/a.png", "photos/b.png", "photos/in/c.png")
    for name in ("model", "weights", "digest", "layer", "pool", "names", "size", "whole"):
        assert getattr(index.features, name) == getattr(found, name), name
    assert index.features.preprocess == found.preprocess
    assert [index.picture(place) for place in range(4)] == [*photos, None]
    nearest = index.nearest(tiny, photos[1], 2)
    with torch.no_grad():
        network: Any = tiny.network
        vectors = torch.cat(
            [
                network.conv2(
                    F.relu(network.conv1(hookviz.prepare_input(tiny, each, size=24).tensor))
                )
                for each in photos
            ]
        ).mean((2, 3))
    expected = F.cosine_similarity(vectors, vectors[1:2])
    order = expected.argsort(descending=True)[:2].tolist()
    assert [name for name, _ in nearest] == [photos[place].name for place in order]
    np.testing.assert_allclose([alike for _, alike in nearest], expected[order], atol=1e-5)
    elsewhere = file.parent / "indexes" / "index.parquet"
    elsewhere.parent.mkdir()
    hookviz.extract_features(tiny, {"far": photos[0], "no file": picture(1)}).save(elsewhere)
    index = FeatureIndex.load(elsewhere)  # what lies outside of its folder has no path
    assert (index.features.names, index.paths) == (("far", "no file"), ("", ""))


def test_another_network_is_refused(tiny: Model, file: Path, photos: list[Path]) -> None:
    index = FeatureIndex.load(file)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        other = as_model(Tiny().eval())
    with pytest.raises(hookviz.HookVizError, match=r"two networks .* make the index anew") as error:
        index.nearest(other, photos[0])
    assert tiny.digest[:12] in str(error.value)
    assert other.digest[:12] in str(error.value)
    steps = replace(tiny, preprocess=Preprocess(99, 16))
    with pytest.raises(hookviz.HookVizError, match="in another way"):
        index.nearest(steps, photos[0])
    with pytest.raises(hookviz.HookVizError, match="count=0"):
        index.nearest(tiny, photos[0], 0)


def test_nothing_is_like_nan(tiny: Model, photos: list[Path], tmp_path: Path) -> None:
    found = made([[1, 2], [np.nan, 1], [np.inf, 1]])
    with pytest.raises(hookviz.HookVizError, match=r"2 of 3 vectors .* that of 'b'"):
        found.save(tmp_path / "index.parquet")
    (tmp_path / "index.parquet").write_bytes(found.parquet())
    with pytest.raises(hookviz.HookVizError, match="2 of 3 vectors"):
        FeatureIndex.load(tmp_path / "index.parquet")
    broken = seeded(Tiny)
    index = FeatureIndex(hookviz.extract_features(as_model(broken), photos, "conv2"))
    with torch.no_grad():
        assert broken.conv1.bias is not None
        broken.conv1.bias[0] = float("nan")
    with pytest.raises(hookviz.HookVizError, match="NaN"):
        index.nearest(replace(as_model(broken), fixed_digest=index.features.digest), photos[0])


@pytest.mark.parametrize(
    "path",
    ["../secret.png", "{top}/secret.png", "in/../../secret.png", "link.png", "up/secret.png"],
)
def test_no_file_outside_of_the_indexs_folder_is_found(path: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "in").mkdir(parents=True)
    picture().save(tmp_path / "secret.png")
    picture().save(folder / "own.png")
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "up").symlink_to(tmp_path)
    paths = pa.array([path.format(top=tmp_path), "own.png"])
    rows = table([[1, 2], [3, 4]]).set_column(1, "path", paths)
    (folder / "index.parquet").write_bytes(parquet(rows))
    index = FeatureIndex.load(folder / "index.parquet")
    assert index.picture(0) is None
    assert index.picture(1) == folder / "own.png"
    (folder / "loop").symlink_to(folder / "loop")
    for other in ("", "gone.png", "in", "a\0b", "x" * 4000, "loop", "/dev/zero"):
        assert FeatureIndex(made([[1]]), folder, (other,)).picture(0) is None
