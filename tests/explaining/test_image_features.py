import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

import hookviz
from hookviz.capturing.feature_index import FeatureIndex
from hookviz.drawing.panels import PicturesPanel, TextPanel
from hookviz.explaining import image_features as neighbours
from hookviz.explaining.image_features import cross_validated, linear_probe
from hookviz.settings import settings
from hookviz.types import Model
from tests.capturing.test_feature_files import parquet
from tests.pictures import picture


def noisy(folder: Path, shade: tuple[int, int, int], count: int, seed: int, noise: int) -> None:
    """So many pictures of about one colour."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(seed)
    for number in range(count):
        pixels = random.normal(shade, noise, (20, 20, 3)).clip(0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Three classes, of which two are hard to tell apart, and a copy."""
    noisy(tmp_path / "photos" / "red", (180, 60, 60), 12, 0, 120)
    noisy(tmp_path / "photos" / "green" / "inside", (80, 160, 80), 9, 1, 120)
    noisy(tmp_path / "photos" / "lime", (90, 150, 80), 7, 2, 120)
    first = tmp_path / "photos" / "red" / "0.png"
    (first.parent / "copy.png").write_bytes(first.read_bytes())
    (tmp_path / "photos" / ".hidden").mkdir()
    (tmp_path / "photos" / "notes.txt").write_text("no class")
    return tmp_path / "photos"


def test_it_agrees_with_scikit_learns_own_cross_validation(tiny: Model, photos: Path) -> None:
    from sklearn.dummy import DummyClassifier  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.metrics import confusion_matrix  # noqa: PLC0415
    from sklearn.model_selection import (  # noqa: PLC0415
        StratifiedGroupKFold,
        cross_val_predict,
        cross_val_score,
    )
    from sklearn.pipeline import Pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    result = linear_probe(tiny, photos, "conv2", folds=4)
    files = sorted(photos.rglob("*.png"))
    features = hookviz.extract_features(tiny, {str(file): file for file in files}, "conv2").vectors
    labels = [file.relative_to(photos).parts[0] for file in files]
    # in the order of the classes, which the folds depend on
    order = sorted(range(len(files)), key=lambda cell: (labels[cell], files[cell]))
    x, y = features[order].astype(float), np.array(labels)[order]
    pictures = [files[cell].read_bytes() for cell in order]
    groups = [pictures.index(data) for data in pictures]
    split = {
        "groups": groups,
        "cv": StratifiedGroupKFold(4, shuffle=True, random_state=0),
    }
    steps = Pipeline([("scale", StandardScaler()), ("fit", LogisticRegression(max_iter=5000))])
    scores = cross_val_score(steps, x, y, **split)
    np.testing.assert_allclose(result.accuracies, scores)
    assert result.accuracy == pytest.approx(scores.mean())
    assert result.deviation == pytest.approx(scores.std(ddof=1))
    base = cross_val_score(DummyClassifier(strategy="most_frequent"), x, y, **split)
    np.testing.assert_allclose(result.baselines, base)
    answers = cross_val_predict(steps, x, y, **split)
    np.testing.assert_array_equal(result.confusion, confusion_matrix(y, answers))
    np.testing.assert_allclose(
        result.by_class, [np.mean(answers[y == name] == name) for name in result.classes]
    )
    assert result.classes == ("green", "lime", "red")
    assert (result.counts, result.copies) == ((9, 7, 13), 1)
    assert len(result.wrong) == int((answers != y).sum())
    assert result.accuracy > result.baseline
    assert result.confusion[0, 1] + result.confusion[1, 0] > 0, "these two are hard to tell apart"


class Pictures:
    """Map-style dataset of the pictures in a folder of classes, as torchvision has it."""

    def __init__(self, folder: Path) -> None:
        self.classes = sorted(each.name for each in folder.iterdir() if each.is_dir())
        self.classes.remove(".hidden")
        self.items = [
            (file, number)
            for number, name in enumerate(self.classes)
            for file in sorted((folder / name).rglob("*.png"))
        ]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[Image.Image, int]:
        file, number = self.items[index]
        return Image.open(file).convert("RGB"), number


class Tensors(Pictures):
    """The same as inputs of a network."""

    def __getitem__(self, index: int) -> Any:
        picture, number = super().__getitem__(index)
        return torch.from_numpy(np.array(picture.resize((16, 16)))).movedim(-1, 0) / 255, number


def test_a_dataset_is_probed_as_its_folder(tiny: Model, photos: Path) -> None:
    expected = linear_probe(tiny, photos, "conv2", folds=4)
    result = linear_probe(tiny, Pictures(photos), "conv2", folds=4)
    assert (result.classes, result.counts) == (expected.classes, expected.counts)
    np.testing.assert_array_equal(result.accuracies, expected.accuracies)
    np.testing.assert_array_equal(result.confusion, expected.confusion)
    assert result.copies == expected.copies == 1
    with pytest.warns(DeprecationWarning, match="images="):
        found = linear_probe(tiny, folder=photos, layer="conv2", folds=4)  # type: ignore[call-arg]
    assert found.counts == result.counts


def test_a_loader_of_batches_is_probed_as_its_dataset(tiny: Model, photos: Path) -> None:
    data = Tensors(photos)
    expected = linear_probe(tiny, data, "conv2", folds=4)
    assert expected.copies == 1
    for batch_size in (4, 28, None):  # 29 images: the last batch of 4, and of 28, has one
        loader: DataLoader[Any] = DataLoader(data, batch_size=batch_size)  # type: ignore[arg-type]
        result = linear_probe(tiny, loader, "conv2", folds=4)
        assert (result.classes, result.counts) == (("green", "lime", "red"), expected.counts)
        np.testing.assert_array_equal(result.confusion, expected.confusion)


def test_labels_without_names_are_classes_and_images_without_labels_are_refused(
    tiny: Model,
) -> None:
    pictures = [(torch.rand(3, 16, 16) + number % 2, 3 + number % 2) for number in range(8)]
    assert linear_probe(tiny, pictures, folds=2).classes == ("3", "4")
    images = torch.rand(4, 3, 16, 16)
    unlabelled: Any
    for unlabelled in (images, list(images), [(image,) for image in images], 3):
        with pytest.raises(hookviz.ImageError, match="is no image with its label; give a dataset"):
            linear_probe(tiny, unlabelled)
    with pytest.raises(hookviz.HookVizError, match="have 1 class, and a classifier needs two"):
        linear_probe(tiny, [(image, 0) for image in images])


def test_random_labels_give_chance() -> None:
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.pipeline import Pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    random = np.random.default_rng(0)
    vectors = random.standard_normal((400, 60)).astype(np.float32)
    labels = [str(label) for label in random.integers(0, 2, 400)]
    accuracies, _, answers = cross_validated(vectors, labels, list(map(str, range(400))), 5)
    assert abs(accuracies.mean() - 0.5) < 3 * 0.5 / np.sqrt(400)
    # the same classifier knows nearly all of what it has seen, so a leak would show
    steps = Pipeline([("scale", StandardScaler()), ("fit", LogisticRegression(max_iter=5000))])
    assert steps.fit(vectors, labels).score(vectors, labels) > 0.6
    assert len(answers) == 400


def test_a_copy_is_never_answered_by_who_has_seen_it() -> None:
    random = np.random.default_rng(1)
    once = random.standard_normal((60, 300)).astype(np.float32)
    labels = [str(label) for label in random.integers(0, 2, 60)]
    vectors, names = np.tile(once, (4, 1)), [*map(str, range(60))] * 4
    apart, _, _ = cross_validated(vectors, labels * 4, names, 5)
    assert abs(apart.mean() - 0.5) < 3 * 0.5 / np.sqrt(60)
    leaking, _, _ = cross_validated(vectors, labels * 4, [*map(str, range(240))], 5)
    assert leaking.mean() > 0.95


def test_too_few_pictures_say_how_many_are_needed(tiny: Model, photos: Path) -> None:
    with pytest.raises(hookviz.HookVizError, match=r"'lime' has 7 .* add 1, or take 7"):
        linear_probe(tiny, photos, folds=8)
    for file in list((photos / "lime").iterdir())[1:]:
        file.write_bytes(next((photos / "lime").iterdir()).read_bytes())
    with pytest.raises(hookviz.HookVizError, match=r"'lime' has 1 different picture .* add 4\."):
        linear_probe(tiny, photos)


def test_what_can_not_be_learned_from_is_refused(tiny: Model, photos: Path, tmp_path: Path) -> None:
    with pytest.raises(hookviz.HookVizError, match="There is no folder"):
        linear_probe(tiny, tmp_path / "gone")
    with pytest.raises(hookviz.HookVizError, match="has 1 folder with images"):
        linear_probe(tiny, photos / "green")
    for folds in (1, 101, 2.5, True):
        with pytest.raises(hookviz.SettingError, match="from 2 to 100"):
            linear_probe(tiny, photos, folds=folds)  # type: ignore[arg-type]
    with pytest.raises(hookviz.UnknownLayerError, match="conv2"):
        linear_probe(tiny, photos, "conv22")
    same = photos / "lime" / "same.png"
    same.write_bytes((photos / "red" / "1.png").read_bytes())
    with pytest.raises(hookviz.HookVizError, match="the same picture in two classes"):
        linear_probe(tiny, photos)


def test_a_broken_image_is_left_out_and_listed(tiny: Model, photos: Path) -> None:
    broken = photos / "red" / "broken.png"
    broken.write_bytes(b"no image")
    result = linear_probe(tiny, photos)
    assert list(result.failed) == [str(broken)]
    assert sum(result.counts) == 29


def test_without_scikit_learn_it_says_what_to_do(
    tiny: Model, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(hookviz.HookVizError, match=r"hookviz\[classify\]"):
        linear_probe(tiny, photos)


@pytest.fixture
def indexed(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "photos" / f"{letter}.png" for letter in "abc"]
    paths[0].parent.mkdir()
    for seed, path in enumerate(paths):
        picture(seed).save(path)
    return paths


@pytest.fixture
def given(tiny: Model, indexed: list[Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """HookViz started with an index of these photographs."""
    path = indexed[0].parent / "index.parquet"
    hookviz.extract_features(tiny, indexed, "conv1").save(path)
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
    tiny: Model, given: Path, indexed: list[Path]
) -> None:
    result = hookviz.run_lens("embedding", tiny, indexed[1], layer="conv2")
    (panel,) = [panel for panel in result.panels if isinstance(panel, PicturesPanel)]
    expected = FeatureIndex.load(given).nearest(tiny, indexed[1], 3)
    assert panel.names == tuple(name for name, _ in expected)
    assert panel.names[0] == "b.png"
    assert panel.notes == tuple(f"{alike:.2f}" for _, alike in expected)
    np.testing.assert_array_equal(result.values["index_names"], panel.names)
    assert panel.pictures[0] is not None
    seen = np.asarray(picture(1).convert("RGB"))[:, 5:35].mean((0, 1))  # its middle square
    assert np.abs(panel.pictures[0].mean((0, 1)) - seen).max() < 5
    indexed[1].unlink()
    again = hookviz.run_lens("embedding", tiny, picture(1), layer="conv2")
    (panel,) = [panel for panel in again.panels if isinstance(panel, PicturesPanel)]
    assert (panel.names[0], panel.pictures[0]) == ("b.png", None)


def test_what_an_index_names_elsewhere_is_not_shown(
    tiny: Model, given: Path, indexed: list[Path]
) -> None:
    secret = given.parent.parent / "secret.png"
    picture(9).save(secret)
    (given.parent / "link.png").symlink_to(secret)
    (given.parent / "passwords.png").write_text("no picture")
    table = FeatureIndex.load(given)
    paths = pa.array(["../secret.png", "link.png", "passwords.png"])
    given.write_bytes(parquet(pq.read_table(given).set_column(1, "path", paths)))
    forget()
    (panel,), _ = neighbours.index_neighbours(tiny, indexed[0])
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
