"""The channels that changed most, against NumPy."""

from dataclasses import replace

import numpy as np
import pytest

import hookviz
from hookviz.explorer.question import NotThereError
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from tests.explorer.subjects import asked, pinned, subject_of, words


@pytest.fixture(scope="module")
def subject() -> Subject:
    return subject_of(hookviz.load_model("shapesnet"))


def test_those_that_changed_most_come_first(subject: Subject) -> None:
    other = subject_of(subject.model, "heart")
    facts = asked(replace(subject, pinned=pinned(other, "stem.first.conv")), "changes")
    b, a = (
        hookviz.capture(subject.model, each.model_input)["stem.first.conv"].values.double().numpy()
        for each in (subject, other)
    )
    difference = np.abs(b - a).mean((1, 2))
    assert [row[0] for row in facts["rows"]] == np.argsort(-difference)[:8].tolist()
    for channel, *numbers in facts["rows"]:
        correlation = np.corrcoef(a[channel].ravel(), b[channel].ravel())[0, 1]
        shown = [float(each.replace("−", "-")) for each in numbers]
        assert shown[:2] == pytest.approx([difference[channel], correlation], rel=6e-3, abs=6e-3)
    assert len(facts["heads"]) == len(facts["rows"][0]) == 4
    mean = np.mean([np.corrcoef(x.ravel(), y.ravel())[0, 1] for x, y in zip(a, b, strict=True)])
    said = words(facts["says"])
    assert said.startswith("Click a tile for its map in A and in B. Hold F to flip")
    on_average = said.partition("correlation is ")[2].partition(" on average")[0]
    assert float(on_average.replace("−", "-")) == pytest.approx(mean, rel=6e-3, abs=6e-3)
    assert facts["caption"].startswith("The channels that changed most")


def test_two_of_which_nothing_is_known_have_no_mean(subject: Subject) -> None:
    zeros = hookviz.capture(subject.model, subject.model_input)["stem.first.conv"].values * 0
    of_zeros = replace(pinned(subject, "stem.first.conv", link="zeros"), read=lambda: zeros)
    says = asked(replace(subject, pinned=of_zeros), "changes")["says"]
    assert words(says) == "Click a tile for its map in A and in B. Hold F to flip between the two."


def test_without_a_pair_of_one_shape_there_are_none(subject: Subject) -> None:
    with pytest.raises(NotThereError, match="Nothing is pinned as A"):
        asked(subject, "changes")
    with pytest.raises(NotThereError, match="A has 128 maps of 8×8 and B 32 of 64×64"):
        asked(replace(subject, pinned=pinned(subject, "stage3")), "changes", View())
