"""A beside B: their numbers and the channels that changed most against NumPy's."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import hookviz
from hookviz.explorer.drawn import Compared, drawn
from hookviz.explorer.pair import pair_facts, pinned_pair
from hookviz.explorer.question import NotThereError
from hookviz.explorer.subject import Pinned, Subject
from hookviz.explorer.view import View
from tests.explorer.subjects import asked, pinned, subject_of, words
from tests.networks import Tiny, as_model, seeded


@pytest.fixture
def subject() -> Subject:
    return subject_of(as_model(seeded(Tiny).eval()))


def compared(subject: Subject, view: View | None = None) -> Compared:
    found = drawn(subject, view or View()).compared
    assert found is not None
    return found


def of_other_image(subject: Subject) -> Subject:
    other = subject_of(subject.model, "cat")
    return replace(subject, pinned=pinned(other, "conv1"))


def test_the_maps_of_a_large_one_stay_where_they_are(subject: Subject) -> None:
    large = torch.zeros(4, 257, 256)
    maps = pinned_pair(
        replace(subject, pinned=Pinned("l", "d", "i", "m", "s", lambda: large)), "s", large
    )
    assert maps is not None
    view = drawn(replace(subject, pinned=None), View())
    assert pair_facts(maps, maps.draw(view.look, "s"), 1)["a"]["values"] is None
    assert pinned_pair(subject, "conv1", large) is None  # where nothing is pinned


def test_a_is_read_once(subject: Subject) -> None:
    read = []
    subject = of_other_image(subject)
    assert subject.pinned is not None
    own = subject.pinned.read

    def counted() -> torch.Tensor:
        read.append(1)
        return own()

    subject = replace(subject, pinned=replace(subject.pinned, read=counted))
    first, again = compared(subject), compared(subject, View(channel=2))
    assert (len(read), first.pair is again.pair) == (1, True)
    assert first.maps.channels is again.maps.channels
    assert subject.pinned is not None
    compared(replace(subject, pinned=replace(subject.pinned, link="another")))
    assert len(read) == 2


def test_what_is_asked_for_of_two_shapes_is_b(subject: Subject) -> None:
    unlike = replace(subject, pinned=pinned(subject, "conv2"))
    assert compared(unlike).maps.choices == ("A", "B")
    assert [compared(unlike, View(compared=each)).shown for each in ("A", "B", "Split")] == [
        *("A", "B", "B")
    ]
    alike = of_other_image(subject)
    assert compared(alike, View(compared="Difference")).shown == "Difference"
    with pytest.raises(hookviz.HookVizError):
        _ = compared(unlike).maps.channels


@pytest.fixture(scope="module")
def shapes_subject() -> Subject:
    return subject_of(hookviz.load_model("shapesnet"))


def test_those_that_changed_most_come_first(shapes_subject: Subject) -> None:
    other = subject_of(shapes_subject.model, "heart")
    facts = asked(replace(shapes_subject, pinned=pinned(other, "stem.first.conv")), "changes")
    b, a = (
        hookviz.capture(shapes_subject.model, each.model_input)["stem.first.conv"]
        .values.double()
        .numpy()
        for each in (shapes_subject, other)
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
    zeros = torch.zeros(32, 64, 64)  # of which nothing is known
    of_zeros = replace(pinned(other, "stem.first.conv", link="zeros"), read=lambda: zeros)
    says = asked(replace(shapes_subject, pinned=of_zeros), "changes")["says"]
    assert words(says) == "Click a tile for its map in A and in B. Hold F to flip between the two."


def test_without_a_pair_of_one_shape_there_are_none(shapes_subject: Subject) -> None:
    with pytest.raises(NotThereError, match="Nothing is pinned as A"):
        asked(shapes_subject, "changes")
    with pytest.raises(NotThereError, match="A has 128 maps of 8×8 and B 32 of 64×64"):
        asked(replace(shapes_subject, pinned=pinned(shapes_subject, "stage3")), "changes", View())
