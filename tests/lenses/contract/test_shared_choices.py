import pytest
import torch
from torch import nn

import hookviz
from hookviz.capturing.inputs import prepare_input
from hookviz.errors import HookVizError, ModelError, SettingError
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.lenses.contract.lens import Subject
from hookviz.lenses.contract.shared_choices import (
    TARGET_CHOICES,
    AttendingLayer,
    call_notes,
    chosen_cell,
    target_of,
)
from hookviz.types import Model
from tests.attending import vit
from tests.networks import as_model, random_input, seeded


@pytest.fixture
def subject(tiny: hookviz.Model) -> Subject:
    return Subject(tiny, prepare_input(tiny, random_input(0)), None)


def test_a_class_or_a_channel_or_a_cell(subject: Subject) -> None:
    known = {parameter.name: parameter.resolve(None, subject) for parameter in TARGET_CHOICES}
    assert known["target"] == subject.top_class
    assert target_of(subject, known) == AttributionTarget(subject.top_class)
    known["layer"], known["channel"] = "conv1", 2
    assert target_of(subject, known) == AttributionTarget(None, "conv1", 2)
    known["row"], known["column"] = 0, 5
    assert target_of(subject, known) == AttributionTarget(None, "conv1", 2, (0, 5))


def test_half_a_cell_is_refused() -> None:
    assert chosen_cell(-1, -1) is None
    assert chosen_cell(0, 0) == (0, 0)
    with pytest.raises(SettingError, match="row=3 and column=-1: choose both"):
        chosen_cell(3, -1)


def test_without_scores_a_layer_has_to_be_chosen() -> None:
    model = as_model(seeded(lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(2))))
    subject = Subject(model, prepare_input(model, random_input(0)), None)
    known = {parameter.name: parameter.resolve(None, subject) for parameter in TARGET_CHOICES}
    with pytest.raises(ModelError, match="no row of scores"):
        target_of(subject, known)
    assert target_of(subject, known | {"layer": "0"}) == AttributionTarget(None, "0", 0)


def test_a_lens_of_images_refuses_sound() -> None:
    sound = torch.zeros(1, 1, 30)
    model = hookviz.wrap(nn.Sequential(nn.Conv1d(1, 3, 5)), example=(sound,))
    with pytest.raises(HookVizError, match="no pixels to weigh"):
        hookviz.run_lens("ablate", model, sound)


def test_a_layer_that_runs_twice_is_told_of_once(subject: Subject) -> None:
    (note,) = call_notes(subject, "relu", None, "conv1", "relu")
    assert note == (
        "relu runs 2 times in a pass; this is about call 1. The layer relu#1 stands for call 2."
    )


LAYER = "encoder.layers.encoder_layer_{}.self_attention"


def subject_of(model: Model) -> Subject:
    return Subject(model, prepare_input(model, random_input(0)), None)


def test_it_is_one_of_those_that_attend() -> None:
    choice, subject = AttendingLayer(), subject_of(as_model(seeded(vit)))
    assert choice.choices(subject) == tuple(map(LAYER.format, range(3)))
    assert choice.resolve(None, subject) == LAYER.format(2)
    assert choice.resolve(LAYER.format(1), subject) == LAYER.format(1)
    with pytest.raises(hookviz.UnknownLayerError, match=r"no layer that attends .*'encoder.ln'"):
        choice.resolve("encoder.ln", subject)


def test_a_network_without_attention_says_which_have_some(tiny: Model) -> None:
    assert AttendingLayer().choices(subject_of(tiny)) == ()
    with pytest.raises(hookviz.ModelError, match=r"computes no attention.*ShapesViT"):
        AttendingLayer().resolve(None, subject_of(tiny))
