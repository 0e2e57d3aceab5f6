import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import hookviz
from hookviz.atlas import known_atlases
from hookviz.images.samples import samples
from hookviz.models.shapesnet import CATEGORIES
from hookviz.settings import settings
from scripts.make_atlases import NETWORKS
from tests.networks import Tiny, as_model
from tests.pictures import encoded, picture


def forget() -> None:
    """Settings and atlases are read once a process; here anew for each test."""
    settings.cache_clear()
    known_atlases._read.cache_clear()


@pytest.fixture(autouse=True)
def afterwards() -> Iterator[None]:
    yield
    forget()


def start_with(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> None:
    monkeypatch.setenv("HOOKVIZ_ATLAS", os.pathsep.join(map(str, paths)))
    forget()


def made(model: hookviz.Model, folder: Path, name: str) -> Path:
    images = folder / "images"
    images.mkdir(exist_ok=True)
    for number in range(3):
        (images / f"{number}.png").write_bytes(encoded(picture(number), "PNG"))
    hookviz.make_atlas(model, images, folder / name, top=2)
    return folder / name


@pytest.mark.parametrize("name", NETWORKS)
def test_the_cnns_in_the_box_have_an_atlas_that_shows_their_values(name: str) -> None:
    model = hookviz.load_model(name)
    atlas: Any = known_atlases.atlas_of(model)
    assert atlas.layers == {
        layer.name: layer.output_shape[0] for layer in hookviz.list_layers(model)
    }
    assert set(atlas.classes) == {*CATEGORIES, "photograph"}
    ours = {hookviz.read_image(sample.path).digest: sample.path for sample in samples()}
    last = list(atlas.layers)[-1]
    for channel in (0, 17):
        for entry in atlas.top_activations(last, channel):
            file: Any = ours.get(entry.image.digest) or atlas.picture(entry.image)
            image = hookviz.read_image(file)
            assert image.digest == entry.image.digest
            values = hookviz.capture(model, image, last)[last].values[channel]
            assert abs(float(values[entry.cell]) - entry.value) < 1e-5 * float(values.abs().max())
            assert float(values.max()) == float(values[entry.cell])
    for layer in atlas.layers:
        assert all(patch is not None for patch in atlas.first_patches(layer))
    assert known_atlases.atlas_of(hookviz.load_model(name, "random")) is None


def test_those_it_was_started_with_come_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model, other = as_model(Tiny()), hookviz.load_model("shapesnet")
    paths = [made(model, tmp_path, "tiny.atlas"), made(other, tmp_path, "own.atlas")]
    start_with(monkeypatch, *paths)
    for each, path in zip((model, other), paths, strict=True):
        atlas: Any = known_atlases.atlas_of(each)
        assert atlas.path == path
    with torch.no_grad():
        changed = Tiny()
        next(changed.parameters()).add_(1)
    assert known_atlases.atlas_of(as_model(changed)) is None


def test_one_that_cannot_be_read_is_left_out_and_the_log_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = made(as_model(Tiny()), tmp_path, "good.atlas")
    broken = tmp_path / "broken.atlas"
    shutil.copytree(good, broken)
    (broken / "atlas.json").write_text("{")
    start_with(monkeypatch, broken, good)
    with caplog.at_level(logging.WARNING, "hookviz"):
        assert known_atlases.known_atlases()[0].path == good
    assert "broken.atlas" in caplog.text
