"""What A's network and B's saw: a picture each, and the likeliest classes."""

from dataclasses import replace

import pytest

import hookviz
from hookviz.errors import HookVizError
from hookviz.explorer.both_seen import both_seen
from hookviz.explorer.subject import Subject
from hookviz.types import Capture
from hookviz.wording import percent
from tests.explorer.subjects import pinned, subject_of

LAYER = "stem.first.conv"


@pytest.fixture(scope="module")
def subject() -> Subject:
    return subject_of(hookviz.load_model("shapesnet"))


def whole(subject: Subject) -> Capture:
    return hookviz.capture(subject.model, subject.model_input)


def test_either_side_has_its_picture_and_its_classes(subject: Subject) -> None:
    other = subject_of(subject.model, "heart")
    runs = []

    def run() -> Capture:
        runs.append(1)
        return whole(other)

    of_pair = replace(subject, pinned=replace(pinned(other, LAYER), run=run))
    a, b = both_seen(of_pair, whole(subject))
    assert (a["name"], b["name"]) == ("A", "B")
    for side, of in ((a, other), (b, subject)):
        label, chance = whole(of).predictions(1)[0]
        assert side["classes"][0] == f"{label} {percent(chance)}"
        assert side["picture"].startswith("data:image/png;base64,")
    assert a["picture"] != b["picture"]
    both_seen(of_pair, whole(subject))
    assert len(runs) == 1  # it is kept


def test_without_a_there_is_nothing_and_one_that_is_gone_is_left_to_its_maps(
    subject: Subject,
) -> None:
    assert both_seen(subject, whole(subject)) == []

    def gone() -> Capture:
        raise HookVizError("gone")

    lost = replace(pinned(subject, LAYER, link="lost"), run=gone)
    assert both_seen(replace(subject, pinned=lost), whole(subject)) == []
