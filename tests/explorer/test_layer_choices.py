"""The layer's row, against the library's own list of layers."""

from dataclasses import replace

import pytest
import torch

import hookviz
from hookviz.atlas.reading import atlas_of
from hookviz.drawing.colormaps import COLORMAPS
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View, choices
from hookviz.language.speaking import speaking
from hookviz.types import Model
from tests.explorer.subjects import asked, pinned, subject_of


@pytest.fixture(scope="module")
def model() -> Model:
    return hookviz.load_model("shapesnet")


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


def test_the_steps_after_a_conv_layer_are_offered(subject: Subject) -> None:
    steps = asked(subject, "layers", View(after="ReLU"))["steps"]
    assert (steps["word"], steps["chosen"], steps["label"]) == ("after", "ReLU", "What is shown")
    assert [each["value"] for each in steps["options"]] == ["Conv2d", "BatchNorm2d", "ReLU"]
    assert asked(subject, "layers", View(after="?"))["steps"]["chosen"] == "Conv2d"


def test_links_stay_english_in_another_language(subject: Subject) -> None:
    with speaking("zh_CN"):
        row = asked(subject, "layers")
    sorts = {each["value"]: each["says"] for each in row["sorts"]}
    assert list(sorts) == ["index", "max", "mean", "variance", "zeros"]
    assert sorts["mean"] != "mean"


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
    unlike = replace(subject, pinned=pinned(subject, "stage1"))
    assert asked(unlike, "layers")["sorts"][-1]["value"] == "zeros"


def test_what_is_pinned_and_gone_is_no_matter_of_the_layers(subject: Subject) -> None:
    def gone() -> torch.Tensor:
        raise hookviz.HookVizError("A is not here")

    lost = replace(subject, pinned=replace(pinned(subject, "stage1"), link="gone", read=gone))
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
