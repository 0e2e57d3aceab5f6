"""The CNN for drawings: its limits as architecture, its weights, its figures and its samples."""

import json
from typing import Any

import pytest
import torch
from PIL import Image
from safetensors import safe_open
from torch import nn

from hookviz.lessons.drawings import TEST_SEEDS
from hookviz.models.shapesnet import (
    CATEGORIES,
    FIGURES_FILE,
    MIN_SIZE,
    WEIGHTS_FILE,
    ShapesNet,
)
from hookviz.settings import ASSETS
from scripts.train_bundled import (
    CARD_FILE,
    TEST_PER_CLASS,
    Drawings,
    Figures,
    Training,
    card,
    confusion,
    load,
)


def _figures() -> tuple[Figures, Training]:
    on_file = json.loads(FIGURES_FILE.read_text(encoding="utf-8"))
    training = Training(**on_file.pop("training"))
    return Figures(**on_file), training


@pytest.mark.parametrize("sides", [(32, 32), (33, 33), (96, 96), (200, 64), (64, 201), (512, 40)])
def test_it_takes_any_size_from_the_smallest_up(sides: tuple[int, int]) -> None:
    assert min(sides) >= MIN_SIZE
    with torch.no_grad():
        scores = ShapesNet().eval()(torch.rand(2, 3, *sides))
    assert scores.shape == (2, len(CATEGORIES))
    assert scores.isfinite().all()
    stage = ShapesNet().eval().stage1
    nn.init.zeros_(stage.second.conv.weight)  # with nothing found only the shortcut is left
    activations = torch.randn(1, 32, 16, 16)
    with torch.no_grad():
        assert torch.equal(stage(activations), stage.shortcut(activations).relu())


def test_the_weights_fit_and_stay_small() -> None:
    assert WEIGHTS_FILE.stat().st_size <= 2_000_000
    network = load()  # strict: a missing or a superfluous tensor raises
    assert all(weights.isfinite().all() for weights in network.state_dict().values())
    assert {weights.dtype for weights in network.parameters()} == {torch.float32}
    with safe_open(WEIGHTS_FILE, framework="pt") as file:
        metadata = file.metadata()
    assert metadata["accuracy"] == f"{_figures()[0].accuracy:.2f}"
    assert sum(weights.numel() for weights in network.parameters()) < 600_000
    kernels = network.stem.first.conv.weight.detach()
    step = (kernels[..., 1:] - kernels[..., :-1]).square().mean()
    assert step < 0.8 * kernels.var()  # 2 × the variance would be noise


def test_it_recognises_drawings_that_it_never_saw() -> None:
    # the figures on file are measured on the first seeds of the range, these are further on
    seeds = TEST_SEEDS[500_000 : 500_000 + 20 * len(CATEGORIES)]
    counts = confusion(load(), Drawings(seeds), workers=0)
    assert counts.sum() == 20 * len(CATEGORIES)
    assert counts.trace() / counts.sum() >= 0.95


def test_figures_are_good_enough_and_honest() -> None:
    figures, training = _figures()
    assert figures.accuracy >= 97
    assert figures.hard_accuracy < figures.accuracy
    assert tuple(figures.per_class) == tuple(figures.hard_per_class) == CATEGORIES
    mean = sum(figures.per_class.values()) / len(CATEGORIES)
    assert mean == pytest.approx(figures.accuracy, abs=0.02)
    assert figures.parameters == sum(weights.numel() for weights in ShapesNet().parameters())
    assert figures.test_per_class == TEST_PER_CLASS >= 200
    assert training.seconds <= 20 * 60
    assert CARD_FILE.read_text(encoding="utf-8") == card(figures, training)


def _samples() -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(
        (ASSETS / "samples" / "samples.json").read_text(encoding="utf-8")
    )
    return listed


@pytest.mark.parametrize("sample", _samples(), ids=lambda sample: sample["file"])
def test_every_sample_opens_and_may_be_passed_on(sample: dict[str, Any]) -> None:
    path = ASSETS / "samples" / sample["file"]
    assert path.stat().st_size < 120_000
    with Image.open(path) as image:
        image.load()
        assert image.mode == "RGB"
        assert MIN_SIZE <= min(image.size) <= max(image.size) <= 512
    assert sample["licence"] in {"CC0 1.0", "Public domain"}
    assert sample["source"]
    assert sample["title"]
    assert sample["alt"].endswith(".")
    page = (ASSETS / "README.md").read_text(encoding="utf-8")
    files = {path.name for path in (ASSETS / "samples").iterdir()} - {"samples.json"}
    assert files == {each["file"] for each in _samples()}
    assert all(part in page for part in (sample["file"], sample["source"], CARD_FILE.name))
