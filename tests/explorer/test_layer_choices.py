"""The layer's row and the tree of layers, against the library's own list of layers."""

import base64
import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib import colormaps
from PIL import Image

import hookviz
from hookviz.atlas.files import atlas_of
from hookviz.drawing.colormaps import COLORMAPS
from hookviz.explaining.receptive_fields.receptive_field import receptive_fields
from hookviz.explorer.layer_choices import layer_tree
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View, choices
from hookviz.language.speaking import speaking
from hookviz.types import Model
from tests.explorer.subjects import Turns, asked, cache, pinned, subject_of


@pytest.fixture(scope="module")
def subject(model: Model) -> Subject:
    return subject_of(model, atlas=atlas_of(model))


@pytest.mark.parametrize("listed", ["conv", "maps"])
def test_every_layer_has_its_neighbours(subject: Subject, model: Model, listed: str) -> None:
    kind = "conv" if listed == "conv" else "maps"
    names = [each.name for each in hookviz.list_layers(model, kind=kind)]
    for name in names:
        row = asked(subject, "layers", View(layer=name, layers=listed))
        assert [each["name"] for each in row["options"]] == names
        assert [each["number"] for each in row["options"]] == list(range(1, len(names) + 1))
        assert row["layer"] == name
        assert row["listed"] == listed


def test_it_says_what_the_layer_is(subject: Subject) -> None:
    row = asked(subject, "layers", View(layer="stage1"))
    assert (row["isConv"], row["hasUsual"]) == (False, True)
    assert (row["steps"], row["warning"]) == (None, "")
    conv = asked(subject, "layers")
    assert (conv["isConv"], conv["shape"]) == (True, [32, 64, 64])
    assert asked(subject, "layers", View(layer="no"))["warning"].startswith("This link asks for")
    with speaking("zh_CN"):  # links stay English
        sorts = {each["value"]: each["says"] for each in asked(subject, "layers")["sorts"]}
    assert list(sorts) == ["index", "max", "mean", "variance", "zeros"]
    assert sorts["mean"] != "mean"


def test_the_steps_after_a_conv_layer_are_offered(subject: Subject) -> None:
    steps = asked(subject, "layers", View(after="ReLU"))["steps"]
    assert (steps["word"], steps["chosen"], steps["label"]) == ("after", "ReLU", "What is shown")
    assert [each["value"] for each in steps["options"]] == ["Conv2d", "BatchNorm2d", "ReLU"]
    assert asked(subject, "layers", View(after="?"))["steps"]["chosen"] == "Conv2d"


def test_what_is_offered_can_be_in_a_link(subject: Subject) -> None:
    row = asked(subject, "layers", View(layer="stage3.second.conv"))
    for name, word in (
        ("sorts", "sort"),
        ("tops", "top"),
        ("scales", "scale"),
        ("colourMaps", "colours"),
    ):
        offered = [each["value"] for each in row[name]]
        assert all(
            View.of_link({word: each}).link().get(word, offered[0]) == each for each in offered
        )
    assert [each["value"] for each in row["tops"]] == ["all", "16", "64"]  # of 128 channels
    assert len(row["colourMaps"]) == len(COLORMAPS) + 1
    assert {each.word for each in choices().values()} > {"sort", "top", "scale", "colours"}


def test_a_pair_of_one_shape_can_be_sorted_by_change(subject: Subject) -> None:
    alike = replace(subject, pinned=pinned(subject, "stem.first.norm"))
    assert asked(alike, "layers")["sorts"][-1]["value"] == "change"
    unlike = pinned(subject, "stage1")
    assert asked(replace(subject, pinned=unlike), "layers")["sorts"][-1]["value"] == "zeros"

    def gone() -> torch.Tensor:
        raise hookviz.HookVizError("A is not here")

    lost = replace(subject, pinned=replace(unlike, link="gone", read=gone))
    assert asked(lost, "layers")["layer"] == "stem.first.conv"


def test_an_atlas_offers_its_classes_where_it_has_the_layer(subject: Subject) -> None:
    assert subject.atlas is not None
    answers = asked(subject, "layers")["patches"]["answers"]
    values = [each["value"] for each in answers]
    assert [each for each in values if each in subject.atlas.classes] == [*subject.atlas.classes]
    assert values[0] == "every channel"
    known = any(each.digest == subject.image.digest for each in subject.atlas.images)
    assert ("those for this image" in values) == known
    assert asked(replace(subject, atlas=None), "layers")["patches"] is None
    with speaking("zh_CN"):
        said = {e["value"]: e["says"] for e in asked(subject, "layers")["patches"]["answers"]}
    assert said["circle"] == "圆形 · circle"


def test_channels_that_are_classes_have_their_names() -> None:
    squeezenet = subject_of(hookviz.load_model("squeezenet"), "cat")
    last = asked(squeezenet, "layers", View(layer="classifier.1"))
    assert (len(last["classes"]), last["classes"][281]) == (1000, "tabby")
    assert asked(squeezenet, "layers", View(layer="features.0"))["classes"] == []


def names(parts: list[dict[str, Any]]) -> Iterator[str]:
    for part in parts:
        if "name" in part:
            yield part["name"]
        yield from names(part.get("parts", []))


def test_conv_layers_stand_in_their_stages(subject: Subject, model: Model) -> None:
    layers = hookviz.list_layers(model)
    facts = asked(subject, "tree", View(layer="stage2.first.conv"))
    assert facts["chosen"] == "stage2.first.conv"
    assert list(names(facts["parts"])) == [layer.name for layer in layers]
    assert [part["stage"] for part in facts["parts"]] == ["stem", "stage1", "stage2", "stage3"]
    first = facts["parts"][0]["parts"][0]
    assert (first["number"], first["short"]) == (1, "first.conv")
    assert first["shape"] == "7×7 /2 · 32×64×64"
    assert first["work"].startswith("sees 7×7 px · ")
    without = layer_tree(model, layers, {}, None, chosen="stem.first.conv", by_block=False)
    assert "unknown" in without["parts"][0]["parts"][0]["work"]  # without receptive fields
    assert without["previews"] is None


def test_parts_stand_in_their_innermost_block(model: Model) -> None:
    layers = hookviz.list_layers(model, kind="maps")
    fields = receptive_fields(model, (3, 128, 128))
    facts = layer_tree(model, layers, fields, None, chosen="stem", by_block=True)
    assert sorted(names(facts["parts"])) == sorted(layer.name for layer in layers)
    assert facts["chosen"] == "stem"

    def check(part: dict[str, Any], parent: str) -> None:
        assert part["name"].startswith(parent)
        assert part["short"] == part["name"].removeprefix(parent)
        for inner in part.get("parts", []):
            check(inner, f"{part['name']}.")

    for part in facts["parts"]:
        check(part, "")
    assert "sees 7×7 px" in next(part["work"] for part in facts["parts"][0]["parts"])


@pytest.mark.parametrize("listed", ["conv", "maps"])
def test_each_layer_has_the_mean_of_its_maps(subject: Subject, model: Model, listed: str) -> None:
    names = [each.name for each in hookviz.list_layers(model, kind=listed)]
    previews = asked(subject, "tree", View(layers=listed))["previews"]
    picture = Image.open(io.BytesIO(base64.b64decode(previews["picture"].partition(",")[2])))
    assert picture.size == tuple(previews["size"])
    assert len(set(map(tuple, previews["corners"].values()))) == len(names)
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


def test_its_pass_is_run_once(model: Model) -> None:
    turns = Turns()
    fresh = subject_of(model, take_turn=turns)
    first = asked(fresh, "tree")
    assert turns.taken == [(model.title, "previews", "")]
    assert asked(fresh, "tree", View(channel=3))["previews"] == first["previews"]
    asked(fresh, "tiles")  # of what is kept
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
