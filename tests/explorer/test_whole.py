"""The whole network in one answer, against the trace and the captures."""

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import hookviz
from hookviz.explaining.network_map.followed_pass import follow_pass
from hookviz.explorer.question import Answer
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from tests.explorer.subjects import subject_of, whole


@pytest.fixture(scope="module")
def subject() -> Subject:
    return subject_of(hookviz.load_model("shapesnet"), "star")


@pytest.fixture(scope="module")
def answer(subject: Subject) -> Answer:
    return whole(subject, "whole")


def leaves(part: Any) -> Iterator[Any]:
    if "parts" not in part:
        yield part
    for each in part.get("parts", ()):
        yield from leaves(each)


def test_every_call_is_a_card_in_order(subject: Subject, answer: Answer) -> None:
    trace = follow_pass(subject.model, subject.model_input, joins=True)
    names = [each["name"] for each in leaves(answer.facts["network"])]
    assert names == [str(step.address) for step in trace.steps]
    assert answer.facts["count"] == len(names)


def test_channels_are_those_with_the_highest_values(subject: Subject, answer: Answer) -> None:
    cards = [each for each in leaves(answer.facts["network"]) if "layer" in each]
    cap = hookviz.capture(subject.model, subject.image, [each["layer"] for each in cards])
    assert len(cards) > 20
    for card in cards:
        values = cap[card["name"]].values
        assert card["maps"] == list(values.shape)
        highest = values.flatten(1).amax(1)
        expected = highest.sort(descending=True).values[: len(card["channels"])]
        assert torch.equal(highest[card["channels"]], expected)


def test_small_maps_stand_in_the_picture_where_it_says(subject: Subject, answer: Answer) -> None:
    picture = np.asarray(Image.open(io.BytesIO(answer.data)).convert("RGB")).astype(int)
    sprite = answer.facts["sprite"]
    card = next(each for each in leaves(answer.facts["network"]) if each["kind"] == "Conv2d")
    at, (down, across), (rows, columns) = card["tile"], sprite["pitch"], sprite["tile"]
    top, left = at // sprite["columns"] * down, at % sprite["columns"] * across
    tile = picture[top : top + rows, left : left + columns]
    values = hookviz.capture(subject.model, subject.image, card["layer"])[card["name"]].values
    small = torch.nn.functional.adaptive_avg_pool2d(
        values[card["channels"][0]][None], (rows, columns)
    )
    redness = tile[..., 0] - tile[..., 2]  # blue is below zero, red above
    assert np.corrcoef(redness.ravel(), small.numpy().ravel())[0, 1] > 0.9


def test_classes_stand_at_the_end(subject: Subject, answer: Answer) -> None:
    expected = hookviz.capture(subject.model, subject.image).predictions(5)
    assert [each["name"] for each in answer.facts["classes"]] == [name for name, _ in expected]


def test_what_is_kept_needs_no_turn(subject: Subject, answer: Answer) -> None:
    again = whole(subject, "whole", View(channel=3))
    assert again.facts["network"] == answer.facts["network"]
