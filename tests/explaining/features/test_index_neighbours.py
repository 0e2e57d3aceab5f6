from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hookviz
from hookviz.capturing.feature_index import FeatureIndex
from hookviz.drawing.panels import PicturesPanel, TextPanel
from hookviz.explaining.features import index_neighbours as neighbours
from hookviz.settings import settings
from hookviz.types import Model
from tests.capturing.test_feature_files import parquet
from tests.pictures import picture


@pytest.fixture
def photos(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "photos" / f"{letter}.png" for letter in "abc"]
    paths[0].parent.mkdir()
    for seed, path in enumerate(paths):
        picture(seed).save(path)
    return paths


@pytest.fixture
def given(tiny: Model, photos: list[Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """HookViz started with an index of these photographs."""
    path = photos[0].parent / "index.parquet"
    hookviz.extract_features(tiny, photos, "conv1").save(path)
    monkeypatch.setenv("HOOKVIZ_INDEX", str(path))
    forget()
    yield path
    monkeypatch.undo()
    forget()


def forget() -> None:
    settings.cache_clear()
    neighbours._loaded.cache_clear()


def test_without_an_index_there_is_nothing(tiny: Model) -> None:
    assert neighbours.index_neighbours(tiny, picture()) == ((), {})


def test_the_nearest_are_shown_with_their_pictures(
    tiny: Model, given: Path, photos: list[Path]
) -> None:
    result = hookviz.run_lens("embedding", tiny, photos[1], layer="conv2")
    (panel,) = [panel for panel in result.panels if isinstance(panel, PicturesPanel)]
    expected = FeatureIndex.load(given).nearest(tiny, photos[1], 3)
    assert panel.names == tuple(name for name, _ in expected)
    assert panel.names[0] == "b.png"
    assert panel.notes == tuple(f"{alike:.2f}" for _, alike in expected)
    np.testing.assert_array_equal(result.values["index_names"], panel.names)
    assert panel.pictures[0] is not None
    seen = np.asarray(picture(1).convert("RGB"))[:, 5:35].mean((0, 1))  # its middle square
    assert np.abs(panel.pictures[0].mean((0, 1)) - seen).max() < 5
    photos[1].unlink()
    again = hookviz.run_lens("embedding", tiny, picture(1), layer="conv2")
    (panel,) = [panel for panel in again.panels if isinstance(panel, PicturesPanel)]
    assert (panel.names[0], panel.pictures[0]) == ("b.png", None)


def test_what_an_index_names_elsewhere_is_not_shown(
    tiny: Model, given: Path, photos: list[Path]
) -> None:
    secret = given.parent.parent / "secret.png"
    picture(9).save(secret)
    (given.parent / "link.png").symlink_to(secret)
    (given.parent / "passwords.png").write_text("no picture")
    table = FeatureIndex.load(given)
    paths = pa.array(["../secret.png", "link.png", "passwords.png"])
    given.write_bytes(parquet(pq.read_table(given).set_column(1, "path", paths)))
    forget()
    (panel,), _ = neighbours.index_neighbours(tiny, photos[0])
    assert isinstance(panel, PicturesPanel)
    assert panel.pictures == (None, None, None)
    assert len(panel.names) == len(table.features.names)


def test_a_panel_says_that_an_index_is_missing_or_of_another_model(
    tiny: Model, given: Path
) -> None:
    shapes = hookviz.load_model("shapesnet")
    (panel,), values = neighbours.index_neighbours(shapes, picture())
    assert isinstance(panel, TextPanel)
    assert panel.tone == "note"
    assert "two networks" in panel.text
    assert values == {}
    given.unlink()
    forget()
    (panel,), _ = neighbours.index_neighbours(tiny, picture())
    assert isinstance(panel, TextPanel)
    assert panel.tone == "bad"
    assert "There is no index" in panel.text
