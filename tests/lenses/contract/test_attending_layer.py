"""The choice of a layer that attends: the last by default, and told what is none."""

import pytest

import hookviz
from hookviz.capturing.inputs import prepare
from hookviz.lenses.contract.attending_layer import AttendingLayer
from hookviz.lenses.contract.lens import Subject
from hookviz.types import Model
from tests.attending import vit
from tests.networks import as_model, random_input, seeded

LAYER = "encoder.layers.encoder_layer_{}.self_attention"


def subject_of(model: Model) -> Subject:
    return Subject(model, prepare(model, random_input(0)), None)


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
