"""The tree with its small pictures, against the mean of what `capture` gives."""

import base64
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from matplotlib import colormaps
from PIL import Image

import hookviz
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.types import Model
from tests.explorer.subjects import Turns, asked, cache, subject_of


@pytest.fixture(scope="module")
def model() -> Model:
    return hookviz.load_model("shapesnet")


@pytest.fixture
def subject(model: Model) -> Subject:
    return subject_of(model)


def rows(parts: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for part in parts:
        if "name" in part:
            yield part
        yield from rows(part.get("parts", []))


@pytest.mark.parametrize("listed", ["conv", "maps"])
def test_each_layer_has_the_mean_of_its_maps(subject: Subject, model: Model, listed: str) -> None:
    facts = asked(subject, "tree", View(layers=listed))
    names = [each.name for each in hookviz.list_layers(model, kind=listed)]
    assert sorted(row["name"] for row in rows(facts["parts"])) == sorted(names)
    previews = facts["previews"]
    picture = Image.open(io.BytesIO(base64.b64decode(previews["picture"].partition(",")[2])))
    assert picture.size == tuple(previews["size"])
    colours = np.asarray(picture.convert("RGB")).astype(int)
    scale = (colormaps["viridis"](np.linspace(0, 1, 256))[:, :3] * 255).round()
    capture = hookviz.capture(model, subject.model_input, names)
    for name in names:
        left, top = previews["corners"][name]
        small = colours[top : top + previews["side"], left : left + previews["side"], None]
        share = np.abs(small - scale).sum(-1).argmin(-1) / 255
        mean = Image.fromarray(capture[name].values.mean(0).numpy())
        method = Image.Resampling.BOX if mean.width > 32 else Image.Resampling.NEAREST
        expected = np.asarray(mean.resize((32, 32), method))
        expected = (expected - expected.min()) / (np.ptp(expected) or 1)
        np.testing.assert_allclose(share, expected, atol=0.015)


def test_blocks_have_their_parts_inside(subject: Subject) -> None:
    facts = asked(subject, "tree", View(layer="stage1"))
    assert facts["chosen"] == "stage1"
    assert {row["name"] for row in facts["parts"]} >= {"stem", "stage1", "stage2", "stage3", "pool"}
    convs = asked(subject, "tree", View(layer="stage2.first.conv"))
    assert convs["chosen"] == "stage2.first.conv"
    assert [part["stage"] for part in convs["parts"]] == ["stem", "stage1", "stage2", "stage3"]
    first = next(rows(convs["parts"]))
    assert first["work"].startswith("sees 7×7 px · ")


def test_its_pass_is_run_once(model: Model) -> None:
    turns = Turns()
    subject = subject_of(model, take_turn=turns)
    first = asked(subject, "tree")
    assert turns.taken == [(model.title, "previews", "")]
    assert asked(subject, "tree", View(channel=3))["previews"] == first["previews"]
    asked(subject, "tiles")  # of what is kept
    assert [kind for _, kind, _ in turns.taken] == ["previews", "capture"]


def test_where_little_is_kept_there_are_no_pictures(model: Model) -> None:
    turns = Turns()
    small = subject_of(model, take_turn=turns, cache=cache(0.5))
    assert asked(small, "tree", View(layers="maps"))["previews"] is None
    assert turns.taken == []
    middle = subject_of(model, cache=cache(4))
    previews = asked(middle, "tree", View(layers="maps"))["previews"]
    if previews is not None:
        assert set(previews["corners"]) == {each.name for each in hookviz.list_layers(model)}
