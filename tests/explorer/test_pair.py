"""A beside B: their numbers against NumPy's, and A's maps computed once."""

from dataclasses import replace

import pytest
import torch

import hookviz
from hookviz.explorer.drawn import Compared, drawn
from hookviz.explorer.pair import pair_facts, pinned_pair
from hookviz.explorer.subject import Pinned, Subject
from hookviz.explorer.view import View
from tests.explorer.subjects import pinned, subject_of
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


def test_nothing_pinned_is_no_pair(subject: Subject) -> None:
    assert pinned_pair(subject, "conv1", torch.zeros(4, 2, 2)) is None
