"""The eye filter, against plain hooks and the picture itself."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import hookviz
from hookviz.settings import ASSETS
from scripts import eye_filter
from scripts.eye_filter import EYES, cat, drawn
from tests.plain_hooks import every_output


@pytest.fixture(scope="module")
def model() -> hookviz.Model:
    return hookviz.load_model("squeezenet")


@pytest.fixture(scope="module")
def found(model: hookviz.Model) -> eye_filter.PartFilter:
    return eye_filter.eye_filter(model)


def test_it_is_the_best_of_every_channel_by_plain_hooks(
    model: hookviz.Model, found: eye_filter.PartFilter
) -> None:
    seen = every_output(model.network, hookviz.prepare_input(model, cat()).tensor)
    modules = model.network.named_modules()
    outputs = [seen[name][0][0] for name, module in modules if isinstance(module, nn.Conv2d)]
    every = []
    for maps in (maps.double() for maps in outputs if min(maps.shape[1:]) >= 10):
        marked = torch.tensor(np.maximum(*(eye.cover(*maps.shape[1:]) for eye in EYES)))
        inside = (maps * marked).sum((1, 2)) / marked.sum()
        outside = (maps * (1 - marked)).sum((1, 2)) / (1 - marked).sum()
        every.append((inside - outside) / maps.flatten(1).std(1, correction=0).clamp_min(1e-12))
    assert found.looked_at == (len(every), sum(map(len, every)))
    assert found.score == pytest.approx(float(torch.cat(every).max()), rel=1e-4)
    rows, columns = found.values.shape
    strongest = []
    for eye in EYES:
        covers = eye.cover(rows, columns) > 0
        strongest.append(found.values[covers].max())
    beside = np.maximum(*(eye.cover(rows, columns) for eye in EYES)) == 0
    assert min(strongest) > found.values[beside].max()
    torch.manual_seed(0)
    assert eye_filter.eye_filter(hookviz.load_model("squeezenet", "random")).score < found.score


def test_the_page_shows_it_as_it_is_drawn(
    model: hookviz.Model, found: eye_filter.PartFilter
) -> None:
    anew = drawn(model, found)
    with Image.open(ASSETS.parent / "docs" / "pictures" / "eye-filter.jpg") as picture:
        assert picture.size == anew.size
        difference = np.abs(np.asarray(picture, np.int16) - np.asarray(anew, np.int16))
    assert difference.mean() < 3
    for page in ("hooks.md", "hooks.zh.md"):
        text = (ASSETS.parent / "docs" / page).read_text("utf-8")
        assert f"{found.layer}" in text
        assert re.search(rf"\b{found.channel}\b", text)


def test_what_has_no_weights_here_is_refused_in_words(tmp_path: Path) -> None:
    file = tmp_path / "eye.png"
    with pytest.raises(SystemExit, match="hookviz fetch no-such-network"):
        eye_filter.main("no-such-network", str(file))
    assert not file.exists()
    eye_filter.main("squeezenet", str(file))
    with Image.open(file) as picture:
        assert picture.width > 900
