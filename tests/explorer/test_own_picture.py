"""What a channel looks for, as answers while the picture grows: stopped, kept, gone on with."""

import io
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from PIL import Image

import hookviz
from hookviz.drawing.pictures import encode_jpeg, enlarged
from hookviz.errors import HookVizError
from hookviz.explorer.question import Answer, NotThereError, QuestionError
from hookviz.explorer.subject import Limit, Run, Subject, at_once
from hookviz.explorer.view import View
from hookviz.language.speaking import speaking
from hookviz.synthesis.settings import MaximizationConfig
from hookviz.types import Model, Progress, ignore
from hookviz.wording import number
from tests.explorer.asking import NO_NUMBERS, Turns, ask, subject_of
from tests.networks import Tiny, as_model, seeded

VIEW = View(layer="conv2")
STEPS = 6
WANTED: Mapping[str, Any] = {"channel": 2, "steps": STEPS, "seed": 5}


class GoneError(Exception):
    """Raised where nobody waits for the answer any more."""


@pytest.fixture
def model() -> Model:
    return as_model(seeded(Tiny).eval())


def made(subject: Subject, **wanted: object) -> Answer:
    return ask(subject, "own_picture", VIEW, **{**WANTED, **wanted})


def steps_made(subject: Subject, **of: object) -> int:
    asked = {"channel": WANTED["channel"], "seed": WANTED["seed"], **of}
    steps: int = ask(subject, "stopped", VIEW, **asked).facts["steps"]
    return steps


@dataclass
class Ending:
    """Turn whose run is ended from outside after so many calls of its progress."""

    after: int

    def __call__(self, label: str, kind: str, layer: str) -> AbstractContextManager[Run]:
        return self._turn(label, kind, layer)

    @contextmanager
    def _turn(self, label: str, kind: str, layer: str) -> Iterator[Run]:
        with at_once(label, kind, layer) as run:
            yield _EndingRun(run.limit, self.after if kind == "own-picture" else 10**9)


@dataclass
class _EndingRun:
    limit: Limit
    left: int

    def yielding(self, progress: Progress = ignore) -> Progress:
        def counted(share: float) -> None:
            progress(share)
            self.left -= 1
            if self.left <= 0:
                raise GoneError

        return counted


def test_the_picture_is_the_librarys(model: Model) -> None:
    answer = made(subject_of(model))
    expected = hookviz.maximize_activation(
        model,
        hookviz.Objective.of_channel("conv2", 2),
        steps=STEPS,
        method=MaximizationConfig(seed=5),
    )
    assert answer.data == encode_jpeg(enlarged(expected.pictures[0], 256), quality=90)
    picture = Image.open(io.BytesIO(answer.data))
    assert (picture.format, picture.size) == ("JPEG", (256, 256))
    facts = answer.facts
    assert (facts["steps"], facts["of"], facts["running"]) == (STEPS, STEPS, False)
    assert facts["value"] == number(expected.values[0])
    assert facts["says"].startswith(f"step 6 · mean {facts['value']}. ")
    assert facts["alt"] == "A picture that the network made for channel 2, step 6"
    assert facts["more"] == STEPS + 256


def test_it_is_reported_while_it_grows(model: Model) -> None:
    reported: list[Answer] = []
    wanted = {**WANTED, "steps": 400}
    began = time.monotonic()
    answer = ask(subject_of(model), "own_picture", VIEW, reported.append, **wanted)
    seconds = time.monotonic() - began
    steps = [each.facts["steps"] for each in reported]
    assert steps[0] == 1
    assert steps == sorted(set(steps))
    assert 1 < len(steps) <= 1 + seconds / 0.16  # about six a second
    assert all(each.facts["running"] for each in reported)
    assert all(Image.open(io.BytesIO(each.data)).size == (256, 256) for each in reported)
    assert answer.facts["steps"] == 400


def test_a_report_that_raises_ends_it_and_keeps_what_is_made(model: Model) -> None:
    subject = subject_of(model)

    def gone(answer: Answer) -> None:
        assert (answer.facts["more"] is None) == (answer.facts["of"] == 2048)  # the most
        raise GoneError

    assert steps_made(subject) == 0
    for steps in (STEPS, 2048):
        with pytest.raises(GoneError):
            ask(subject, "own_picture", VIEW, gone, **{**WANTED, "steps": steps})
    assert steps_made(subject) == 1
    reported: list[Answer] = []
    kept = ask(subject, "own_picture", VIEW, reported.append, **{**WANTED, "steps": 1})
    assert kept.facts["steps"] == 1
    assert reported == []  # it is there already
    assert made(subject).data == made(subject_of(model)).data


@pytest.mark.parametrize("after", [1, 3, 5])
def test_a_run_that_is_ended_is_gone_on_with_to_the_same_picture(model: Model, after: int) -> None:
    subject = subject_of(model, take_turn=Ending(after))
    with pytest.raises(GoneError):
        made(subject)
    turns = Turns()
    reported: list[int] = []
    answer = ask(
        subject_of(model, cache=subject.cache, take_turn=turns),
        "own_picture",
        VIEW,
        lambda each: reported.append(each.facts["steps"]),
        **WANTED,
    )
    assert answer.data == made(subject_of(model)).data
    assert 1 <= reported[0] <= after  # the last that was drawn of it
    assert reported[1] == after + 1
    assert [kind for _, kind, _ in turns.taken] == ["own-picture"]


def test_more_steps_go_on_and_fewer_begin_anew(model: Model) -> None:
    subject, reported = subject_of(model), list[int]()
    made(subject)

    def report(each: Answer) -> None:
        reported.append(each.facts["steps"])

    ask(subject, "own_picture", VIEW, report, **{**WANTED, "steps": 9})
    assert reported[:2] == [STEPS, STEPS + 1]
    for steps in (9, 2):
        assert made(subject, steps=steps).data == made(subject_of(model), steps=steps).data


def test_a_seed_gives_its_own_picture_and_the_image_is_nothing_to_it(model: Model) -> None:
    first = made(subject_of(model)).data
    assert made(subject_of(model, "cat")).data == first
    assert made(subject_of(model), seed=6).data != first
    assert made(subject_of(model), channel=3).data != first
    other = seeded(Tiny).eval()
    other.conv2.weight.data *= -1
    subject = subject_of(model)
    made(subject)
    assert made(subject_of(as_model(other), cache=subject.cache)).data != first
    assert made(subject).data == first


def test_what_is_made_is_there_at_once(model: Model) -> None:
    turns = Turns()
    subject = subject_of(model, take_turn=turns)
    first = made(subject)
    taken = list(turns.taken)
    assert made(subject) == first
    assert turns.taken == taken
    assert steps_made(subject) == STEPS
    assert steps_made(subject, seed=6) == steps_made(subject, channel=0) == 0
    with speaking("zh_CN"):
        assert made(subject).facts["says"] != first.facts["says"]


_NO_STEPS = [each for each in NO_NUMBERS if each.values != (10**6,)]


@pytest.mark.parametrize("given", [*_NO_STEPS, 0, 2049])
def test_what_is_no_number_of_steps_is_refused(model: Model, given: object) -> None:
    with pytest.raises(QuestionError, match=r"steps=.* is not a whole number from 1 to 2048\."):
        made(subject_of(model), steps=given)


@pytest.mark.parametrize("question", ["own_picture", "stopped"])
def test_what_is_no_seed_no_channel_and_no_first_call_is_refused(
    model: Model, question: str
) -> None:
    for given in ("1", 10**9):
        with pytest.raises(QuestionError, match=r"seed=.* is not a whole number from 0 to \d+\."):
            ask(subject_of(model), question, VIEW, **{**WANTED, "seed": given})
    with pytest.raises(NotThereError, match="conv2 has no channel"):
        ask(subject_of(model), question, VIEW, **{**WANTED, "channel": 6})
    network = seeded(Tiny).eval()
    with torch.no_grad():
        assert network.conv1.bias is not None
        network.conv1.weight.zero_()
        network.conv1.bias.fill_(-1)  # of which ReLU makes zeros everywhere
    with pytest.raises(HookVizError, match="gradient"):
        made(subject_of(as_model(network)))
    view = View(layers="maps", layer="relu", output="call 2")
    facts = ask(subject_of(model), "own_picture", view, **WANTED).facts
    assert facts["missing"].startswith("Pictures are made for the first call of a layer")
