"""What a subject keeps, and that its turn is had at once where nobody else computes."""

from dataclasses import replace

import pytest

import hookviz
from hookviz.explorer.subject import Subject, at_once
from tests.explorer.subjects import cache, subject_of
from tests.networks import Tiny, as_model, seeded


@pytest.fixture
def subject() -> Subject:
    return subject_of(as_model(seeded(Tiny).eval()))


def test_what_was_computed_is_kept_for_this_network_and_image_alone(subject: Subject) -> None:
    made: list[int] = []

    def compute() -> list[int]:
        made.append(len(made))
        return [*made]

    def value(of: Subject, *key: object) -> object:
        return of.cached(*key, compute=compute, size=lambda _: 1000)

    assert value(subject, "x", 1) == value(subject, "x", 1) == [0]
    assert value(subject, "x", 2) == [0, 1]
    other = replace(subject, model_input=replace(subject.model_input, digest="another"))
    assert value(other, "x", 1) == [0, 1, 2]
    assert value(subject, "x", 1) == [0]
    assert subject.cache.used == 3000
    small = replace(subject, cache=cache(0.001))
    first, second = (small.cached("x", compute=object, size=lambda _: 5000) for _ in range(2))
    assert first is not second  # too large to be kept
    assert not small.cache.used


def test_a_turn_is_had_at_once_and_has_no_limit(subject: Subject) -> None:
    shares: list[float] = []
    with at_once("Tiny", "capture", "conv1") as run, run.limit.over_torch():
        report = run.limit.within(run.yielding(shares.append))
        hookviz.capture(subject.model, subject.model_input, progress=report)
    assert shares[-1] == pytest.approx(1)
