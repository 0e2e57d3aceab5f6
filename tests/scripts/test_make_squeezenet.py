"""The files of the bundled SqueezeNet: that they belong together, and what making them refuses."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torchvision import models

import hookviz
from hookviz.images.samples import samples
from hookviz.models.bundled import SQUEEZENET
from hookviz.settings import ASSETS
from scripts import make_squeezenet
from tests.networks import seeded


def test_the_figures_on_file_are_honest_and_the_card_says_them() -> None:
    figures = make_squeezenet.on_file()
    assert (figures.accuracy, figures.top5_accuracy) == make_squeezenet.PUBLISHED
    assert figures.largest_difference <= make_squeezenet.MOST_MOVED
    assert figures.pictures >= len(samples())
    model = hookviz.load_model(SQUEEZENET.name)
    photos = [sample.path for sample in samples() if sample.kind == "photo"]
    assert list(figures.samples) == [path.name for path in photos]
    for path in photos:
        label, probability = hookviz.capture(model, path, []).predictions(1)[0]
        filed, percent = figures.samples[path.name]
        assert label == filed
        assert 100 * probability == pytest.approx(percent, abs=0.1)
    on_file = make_squeezenet.CARD_FILE.read_text(encoding="utf-8")
    assert on_file == make_squeezenet.card(make_squeezenet.on_file())
    page = (ASSETS / "README.md").read_text(encoding="utf-8")
    assert make_squeezenet.CARD_FILE.name in page
    assert make_squeezenet.LICENCE_FILE.name in page
    assert "Apache License" in make_squeezenet.LICENCE_FILE.read_text(encoding="utf-8")


def test_weights_that_come_out_otherwise_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = SQUEEZENET.weights_file.read_bytes()
    source = tmp_path / "float32.safetensors"
    state = seeded(models.squeezenet1_1).state_dict()
    state["classifier.1.bias"] += 1000 + torch.arange(1000) / 1000  # finer than half precision is
    save_file(state, source)
    assert make_squeezenet.main([str(source)]) == 1
    assert "cat.jpg comes out otherwise" in capsys.readouterr().err
    assert SQUEEZENET.weights_file.read_bytes() == before


def test_equal_weights_become_equal_files(tmp_path: Path) -> None:
    source = tmp_path / "float32.safetensors"
    save_file(seeded(models.squeezenet1_1).state_dict(), source)
    for name in ("one", "two"):
        make_squeezenet.halve(source, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert {tensor.dtype for tensor in load_file(tmp_path / "one").values()} == {torch.float16}
