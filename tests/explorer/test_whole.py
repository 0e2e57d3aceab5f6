"""The whole network as an answer, and why a class, against the library's numbers."""

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import hookviz
from hookviz.errors import HookVizError
from hookviz.explaining.network_map.class_paths import ClassPaths, class_paths, shares_of
from hookviz.explaining.network_map.followed_pass import follow_pass
from hookviz.explorer.answering import answer as answer_question
from hookviz.explorer.question import Answer, NotThereError, Question
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from tests.explorer.asking import ask, asked, subject_of


@pytest.fixture(scope="module")
def subject() -> Subject:
    return subject_of(hookviz.load_model("shapesnet"), "star")


@pytest.fixture(scope="module")
def answer(subject: Subject) -> Answer:
    return ask(subject, "whole")


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
    cards = [each for each in leaves(answer.facts["network"]) if "layer" in each]
    cap = hookviz.capture(subject.model, subject.image, [each["layer"] for each in cards])
    assert len(cards) > 20
    for card in cards:  # channels are those with the highest values
        values = cap[card["name"]].values
        assert card["maps"] == list(values.shape)
        highest = values.flatten(1).amax(1)
        expected = highest.sort(descending=True).values[: len(card["channels"])]
        assert torch.equal(highest[card["channels"]], expected)
    classes = hookviz.capture(subject.model, subject.image).predictions(5)
    assert [each["name"] for each in answer.facts["classes"]] == [name for name, _ in classes]
    assert ask(subject, "whole", View(channel=3)).facts["network"] == answer.facts["network"]


def test_small_maps_stand_in_the_picture_where_it_says(
    subject: Subject, answer: Answer, told: Answer
) -> None:
    first = next(each for each in leaves(answer.facts["network"]) if each["kind"] == "Conv2d")
    name = first["layer"]
    values = hookviz.capture(subject.model, subject.image, name)[name].values
    for drawn, card in ((answer, first), (told, told.facts["layers"][name])):
        picture = np.asarray(Image.open(io.BytesIO(drawn.data)).convert("RGB")).astype(int)
        sprite, at = drawn.facts["sprite"], card["tile"]
        (down, across), (rows, columns) = sprite["pitch"], sprite["tile"]
        top, left = at // sprite["columns"] * down, at % sprite["columns"] * across
        tile = picture[top : top + rows, left : left + columns]
        small = torch.nn.functional.adaptive_avg_pool2d(
            values[card["channels"][0]][None], (rows, columns)
        )
        redness = tile[..., 0] - tile[..., 2]  # blue is below zero, red above
        assert np.corrcoef(redness.ravel(), small.numpy().ravel())[0, 1] > 0.9


CLASS = 3


def why(subject: Subject, number: object) -> Answer:
    return answer_question(subject, View(), Question("why", {"class": number}))


@pytest.fixture(scope="module")
def told(subject: Subject) -> Answer:
    return why(subject, CLASS)


@pytest.fixture(scope="module")
def paths(subject: Subject) -> ClassPaths:
    return class_paths(subject.model, subject.model_input, CLASS)


def test_layers_have_the_channels_that_speak_most_for_the_class(
    told: Answer, paths: ClassPaths
) -> None:
    layers = told.facts["layers"]
    assert {"stem.first.conv", "stage2", "stage3.relu_out"} <= layers.keys()
    for name in ("stem.first.conv", "stage3.second.norm"):
        number = [str(step.address) for step in paths.trace.steps].index(name) + 1
        shares = shares_of(paths.steps[number])
        expected = shares.topk(3)
        assert layers[name]["channels"] == expected.indices.tolist()
        first = layers[name]["shares"][:3]
        assert [channel for channel, _ in first] == expected.indices.tolist()
        assert [share for _, share in first] == pytest.approx(expected.values.tolist(), abs=1e-4)


def parts_of(part: Any) -> dict[str, Any]:
    found = {part["name"] or "/": part}
    for each in part.get("parts", ()):
        found |= parts_of(each)
    return found


def test_lines_are_those_of_the_map_and_add_up(subject: Subject, told: Answer) -> None:
    parts = parts_of(asked(subject, "whole")["network"])
    blocks = told.facts["blocks"]
    assert blocks.keys() == {name for name, part in parts.items() if "parts" in part}
    for name, lines in blocks.items():
        drawn = {
            tuple(None if at < 0 else parts[name]["parts"][at]["name"] for at in line[:2])
            for line in parts[name]["lines"]
        }
        assert {(begin, end) for begin, end, _ in lines} <= drawn
        leaving = sum(share for _, end, share in lines if end is None)
        entering = sum(share for begin, _, share in lines if begin is None)
        assert entering == pytest.approx(leaving, abs=1e-3)
    whole = [share for begin, _, share in blocks["/"] if begin is None]
    assert sum(whole) == pytest.approx(1, abs=1e-3)


def test_ways_name_the_layer_that_made_each_channel(told: Answer, paths: ClassPaths) -> None:
    assert len(told.facts["ways"]) == len(paths.channel_paths) == 3
    for way, known in zip(told.facts["ways"], paths.channel_paths, strict=True):
        told_steps = [(step["name"], step["channel"]) for step in reversed(way["steps"])]
        convs = [
            (str(paths.trace.steps[step.step - 1].address), step.channel)
            for step in known
            if paths.trace.steps[step.step - 1].kind == "Conv2d"
        ]
        made_anew = [each for at, each in enumerate(convs) if not at or each[1] != convs[at - 1][1]]
        assert told_steps == made_anew
        assert way["steps"][0]["share"] == pytest.approx(known[-1].share)


def test_the_answer_names_the_convolutions_at_which_the_ways_part(told: Answer) -> None:
    for way in told.facts["ways"]:
        cause, steps = way["cause"], way["steps"]
        at = next(at for at, step in enumerate(steps) if step["share"] < 0.999)
        assert cause["name"] in {step["name"] for step in steps[at:]}
        assert "conv" in cause["name"] or "head" in cause["name"]
        assert cause["says"] == steps[at]["says"]
        assert (
            f"channel {cause['channel']} of {cause['name']} ({cause['says']})"
            in (told.facts["because"])
        )
    assert told.facts["because"].startswith("Because of channel ")


def test_a_class_that_is_not_there_is_refused(subject: Subject) -> None:
    for number in (99, -1, "star", None):
        with pytest.raises(NotThereError, match="its classes are 0 to"):
            why(subject, number)
    headless = hookviz.wrap(torch.nn.Sequential(torch.nn.Conv2d(3, 2, 3), torch.nn.Flatten(2)))
    with pytest.raises(HookVizError, match="puts out no class scores"):
        why(subject_of(headless, "star"), 0)
