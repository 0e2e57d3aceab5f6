import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import hookviz
from hookviz.atlas import known_atlases
from hookviz.models.bundled import BUNDLED
from hookviz.settings import settings
from tests.conftest import Tiny, as_model, encoded, picture


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


@pytest.mark.parametrize("name", BUNDLED)
def test_the_networks_in_the_box_have_an_atlas(name: str) -> None:
    atlas = known_atlases.atlas_of(hookviz.load_model(name))
    assert atlas is not None
    assert atlas.model == name
    assert {layer.name for layer in hookviz.list_layers(hookviz.load_model(name))} <= set(
        atlas.layers
    )
    assert known_atlases.atlas_of(hookviz.load_model(name, "random")) is None


def test_those_it_was_started_with_come_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model, other = as_model(Tiny()), hookviz.load_model("shapesnet")
    paths = [made(model, tmp_path, "tiny.atlas"), made(other, tmp_path, "own.atlas")]
    start_with(monkeypatch, *paths)
    for each, path in zip((model, other), paths, strict=True):
        atlas = known_atlases.atlas_of(each)
        assert atlas is not None
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
