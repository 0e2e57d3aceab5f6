"""A kernel's walk over one of its inputs as an answer, against the layer's recorded input."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hookviz
from hookviz.errors import SettingError
from hookviz.explorer.question import NotThereError
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from tests.explorer.asking import ask, floats
from tests.explorer.subjects import subject_of
from tests.networks import as_model, seeded

CELL: dict[str, Any] = {"channel": 5, "row": 3, "column": 4}


class Wide(nn.Module):
    """A layer of 70 inputs, one of two groups, and pooling after it."""

    def __init__(self) -> None:
        super().__init__()
        self.spread = nn.Conv2d(3, 70, 1)
        self.conv = nn.Conv2d(70, 6, 3, padding=1)
        self.grouped = nn.Conv2d(6, 6, 3, padding=1, groups=2)
        self.pool = nn.MaxPool2d(2)

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.pool(self.grouped(self.conv(self.spread(images)))).mean((2, 3))
        return scores


@pytest.fixture(scope="module")
def network() -> Wide:
    return seeded(Wide).eval()


@pytest.fixture(scope="module")
def subject(network: Wide) -> Subject:
    return subject_of(as_model(network))


def by_contribution(network: Wide, subject: Subject, channel: int) -> list[int]:
    """The inputs of a channel, that which adds most to its map first."""
    capture = hookviz.capture(subject.model, subject.model_input, inputs=True)
    given, weight = capture.inputs("conv")[0].values, network.conv.weight
    with torch.no_grad():
        added = [
            float(F.conv2d(given[None, [k]], weight[[channel]][:, [k]], padding=1).abs().mean())
            for k in range(len(given))
        ]
    order: list[int] = np.argsort(-np.array(added), kind="stable").tolist()
    return order


def test_it_begins_with_the_input_that_adds_most(network: Wide, subject: Subject) -> None:
    facts = ask(subject, "walk", View(layer="conv"), **CELL).facts
    order = by_contribution(network, subject, 5)
    assert facts["chosen"] == order[0]
    assert [each["value"] for each in facts["inputs"]] == order[:64]
    assert facts["inputs"][0]["says"] == f"input {order[0]}, which adds most"
    assert facts["inputs"][1]["says"] == f"input {order[1]}"
    assert facts["colours"] == subject.colours.diverging
    assert facts["cell"] == [3, 4]


@pytest.mark.parametrize("which", [1, 69])
def test_any_input_can_be_walked_over(network: Wide, subject: Subject, which: int) -> None:
    chosen = by_contribution(network, subject, 5)[which]
    facts = ask(subject, "walk", View(layer="conv"), input=chosen, **CELL).facts
    assert facts["chosen"] == chosen
    assert chosen in [each["value"] for each in facts["inputs"]]
    np.testing.assert_allclose(
        facts["kernel"], network.conv.weight[5, chosen].detach().numpy(), rtol=1e-6
    )
    capture = hookviz.capture(subject.model, subject.model_input, inputs=True)
    padded = F.pad(capture.inputs("conv")[0].values[chosen], (1, 1, 1, 1)).numpy()
    np.testing.assert_array_equal(floats(facts["input"], 18, 18), padded)
    output = capture["conv"].values[5].numpy()
    np.testing.assert_array_equal(floats(facts["output"], 16, 16), output)


def test_a_grouped_layers_inputs_are_its_groups(subject: Subject) -> None:
    view = View(layer="grouped")
    facts = ask(subject, "walk", view, **CELL).facts
    assert {each["value"] for each in facts["inputs"]} == {3, 4, 5}
    assert ask(subject, "walk", view, input=3, **CELL).facts["chosen"] == 3
    with pytest.raises(NotThereError, match="5 of grouped has no input 2: its inputs are 3 to 5"):
        ask(subject, "walk", view, input=2, **CELL)


def test_it_begins_at_the_place_of_a_pooled_maps_cell(subject: Subject) -> None:
    pooled = View(layer="grouped", after="MaxPool2d")
    assert ask(subject, "walk", pooled, **CELL).facts["cell"] == [7, 9]


def test_what_is_not_there_is_refused_in_words(subject: Subject) -> None:
    with pytest.raises(NotThereError, match=r"has no input .*: its inputs are 0 to 69\."):
        ask(subject, "walk", View(layer="conv"), input=70, **CELL)
    for axis in CELL:
        with pytest.raises(NotThereError, match=f"conv has no {axis}"):
            ask(subject, "walk", View(layer="conv"), **{**CELL, axis: 16})
    view = View(layers="maps", layer="pool")
    with pytest.raises(SettingError, match="is a MaxPool2d"):
        ask(subject, "walk", view, channel=0, row=0, column=0)
