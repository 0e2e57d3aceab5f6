"""Which layer a view means, against the list of layers, and what it puts out, against `capture`."""

import re
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import pytest
import torch
from torch import nn

import hookviz
from hookviz.explorer.layers import captured, maps, resolve, steps_of
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.types import Model, Progress
from tests.explorer.asking import Turns, cache, subject_of
from tests.networks import Tiny, as_model, seeded


class Strips(nn.Module):
    """A shared ReLU and a pair of maps, and no convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.AvgPool2d(2)
        self.relu = nn.ReLU()
        self.head = nn.Linear(3, 2)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        small = self.relu(self.pool(self.relu(images - images.mean())))
        scores: torch.Tensor = self.head(small.mean((2, 3)))
        return scores


def test_each_layer_that_puts_out_maps_is_found_in_its_list(subject: Subject, model: Model) -> None:
    looked = resolve(subject, View())  # without a choice it is the first conv layer
    convs = [each.name for each in hookviz.list_layers(model)]
    assert [each.name for each in looked.layers] == convs
    assert looked.layer == looked.layers[0]
    assert (looked.listed, str(looked.step), looked.warning) == ("conv", "stem.first.conv", "")
    for layer in hookviz.list_layers(model, kind="maps"):
        looked = resolve(subject, View(layer=layer.name))
        assert looked.layer.name == layer.name
        assert looked.listed == ("conv" if layer.name in convs else "maps")
        assert looked.warning == ""
        assert resolve(subject, View(layer=layer.name, layers="maps")).layer == layer


@pytest.mark.parametrize(
    ("asked", "layers", "found", "words"),
    [
        (
            "stem.first.konv",
            "conv",
            "stem.first.conv",
            r"'stem\.first\.konv', which is not here\. ",
        ),
        ("stem.first.konv", "conv", "stem.first.conv", r"The nearest: stem\.first\.conv"),
        ("", "conv", "stem.first.conv", "asks for the layer '', which is not here"),
        ("x" * 900, "maps", "stem", "which is not here"),
        (
            "head",
            "conv",
            "stage3.shortcut.conv",
            "head puts out 20 numbers, no maps: this is the la",
        ),
        ("flatten", "maps", "pool", "flatten puts out 128 numbers, no maps"),
    ],
)
def test_what_is_not_there_leads_to_what_is(
    subject: Subject, asked: str, layers: str, found: str, words: str
) -> None:
    looked = resolve(subject, View(layer=asked, layers=layers))
    assert looked.layer.name == found
    assert re.search(words, looked.warning)
    assert len(looked.warning) < 250


def test_what_follows_a_conv_layer_is_chosen_by_its_kind(subject: Subject, model: Model) -> None:
    steps = steps_of(subject.trace, hookviz.list_layers(model)[0])
    assert steps.word == "after"
    modules = dict(model.network.named_modules())
    assert [type(modules[each.layer]).__name__ for each in steps.outputs.values()] == list(
        steps.outputs
    )
    for kind, address in steps.outputs.items():
        looked = resolve(subject, View(layer="stem.first.conv", after=kind))
        assert looked.step == address
        expected = hookviz.capture(model, subject.model_input, address.layer)[str(address)].values
        torch.testing.assert_close(maps(subject, looked), expected, rtol=0, atol=0)
    assert str(resolve(subject, View(after="Softmax")).step) == "stem.first.conv"


def test_of_two_calls_each_can_be_chosen() -> None:
    subject = subject_of(as_model(seeded(Strips).eval()))
    looked = resolve(subject, View(layer="relu"))
    assert (looked.listed, str(looked.step)) == ("maps", "relu")
    second = resolve(subject, View(layer="relu", output="call 2"))
    assert str(second.step) == "relu#1"
    images = subject.model_input.tensor
    with torch.no_grad():
        first = (images - images.mean()).relu()
        expected = nn.functional.avg_pool2d(first, 2).relu()[0]
    torch.testing.assert_close(maps(subject, looked), first[0])
    torch.testing.assert_close(captured(subject, second)[str(second.step)].values, expected)
    model = as_model(nn.Sequential(nn.Conv2d(3, 4, 3), *(nn.ReLU() for _ in range(3))).eval())
    words = steps_of(subject_of(model).trace, hookviz.list_layers(model)[0]).outputs
    assert list(words) == ["Conv2d", "ReLU", "ReLU 2", "ReLU 3"]
    flat = as_model(nn.Sequential(nn.Flatten(), nn.Linear(768, 2)).eval())
    with pytest.raises(hookviz.HookVizError, match="no layer whose channels could be shown"):
        resolve(subject_of(flat), View())


def test_a_pass_takes_one_turn_and_what_is_kept_takes_none(model: Model) -> None:
    turns = Turns()
    subject = subject_of(model, take_turn=turns)
    looked = resolve(subject, View(layer="stage1.first.conv", after="ReLU"))
    first = captured(subject, looked)
    assert turns.taken == [(model.title, "capture", "stage1.relu")]
    again = captured(subject, looked)
    assert (first.forward_passes, again.forward_passes) == (1, 0)
    assert len(turns.taken) == 1
    assert torch.equal(first["stage1.relu"].values, again["stage1.relu"].values)


def test_what_all_share_is_taken_from_it_and_given_to_it(model: Model) -> None:
    shared, turns = cache(), Turns()
    one, other = (subject_of(model, take_turn=turns, shared=shared) for _ in range(2))
    looked = resolve(one, View())
    expected = captured(one, looked)
    found = captured(other, looked)
    assert (expected.forward_passes, found.forward_passes, len(turns.taken)) == (1, 0, 1)
    assert torch.equal(found["stem.first.conv"].values, expected["stem.first.conv"].values)
    assert other.cache.used


class TooLong:
    """A run whose time is over after the first layer."""

    @property
    def limit(self) -> "TooLong":
        return self

    def yielding(self, progress: Progress = lambda _share: None) -> Progress:
        return progress

    def over_torch(self) -> AbstractContextManager[None]:
        return nullcontext()

    def within(self, progress: Progress = lambda _share: None) -> Progress:
        def report(share: float) -> None:
            progress(share)
            raise hookviz.HookVizError("too long")

        return report


def test_a_run_that_takes_too_long_ends_and_nothing_is_kept() -> None:
    subject = subject_of(
        as_model(seeded(Tiny).eval()), take_turn=lambda *_facts: nullcontext(TooLong())
    )
    with pytest.raises(hookviz.HookVizError, match="too long"):
        maps(subject, resolve(subject, View()))
    assert not subject.cache.used
    assert maps(replace(subject, take_turn=Turns()), resolve(subject, View())).shape == (4, 16, 16)
