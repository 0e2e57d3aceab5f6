"""Networks whose weights are no numbers, which a training run brings: every question answers."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from torch import nn

from hookviz.errors import HookVizError
from hookviz.explorer.answering import QUESTIONS
from hookviz.explorer.view import View
from tests.explorer.asking import ask, subject_of
from tests.networks import as_model, seeded


def _all_nan(network: nn.Sequential) -> None:
    for each in network.parameters():
        each.data.fill_(float("nan"))


def _infinite_bias(network: nn.Sequential) -> None:
    network.get_parameter("0.bias").data.fill_(float("inf"))


def _half_nan(network: nn.Sequential) -> None:
    network.get_parameter("2.weight").data[:3] = float("nan")


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("spoil", [_all_nan, _infinite_bias, _half_nan])
@pytest.mark.parametrize("layer", ["0", "2"])
def test_every_question_answers(spoil: Callable[[nn.Sequential], None], layer: str) -> None:
    network = seeded(
        lambda: nn.Sequential(
            *(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 6, 3), nn.AdaptiveAvgPool2d(1)),
            *(nn.Flatten(), nn.Linear(6, 5)),
        )
    ).eval()
    spoil(network)
    subject = subject_of(as_model(network))
    given: dict[str, Any] = {"channel": 0, "row": 0, "column": 0, "class": 0, "kind": "channel-csv"}
    answered = set()
    for question in QUESTIONS:
        try:
            facts, _ = ask(subject, question, View(layers="maps", layer=layer), **given)
        except HookVizError:  # it is refused in words
            continue
        json.dumps(facts, allow_nan=False)
        answered.add(question)
    assert {"head", "whole", "cell", "walk", "tiles", "channel"} <= answered
