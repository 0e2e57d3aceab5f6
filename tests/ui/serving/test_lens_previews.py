"""Small answers of lenses, as the route gives them."""

import pytest

import hookviz
from hookviz.explorer.question import NotThereError, ignore_report
from hookviz.explorer.view import View
from hookviz.ui.serving import lens_previews
from hookviz.ui.serving.lens_previews import answer_lens
from tests.explorer.subjects import Turns, subject_of


def test_a_small_answer_takes_one_turn_and_is_kept() -> None:
    turns = Turns()
    subject = subject_of(hookviz.load_model("shapesnet"), take_turn=turns)
    facts, picture = answer_lens(subject, View(), {"lens": "kernels"}, ignore_report)
    assert picture or facts["rows"]
    assert not facts["ofSample"]
    assert answer_lens(subject, View(), {"lens": "kernels"}, ignore_report) == (facts, picture)
    assert len(turns.taken) == 1


def test_what_takes_too_long_is_shown_of_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lens_previews, "LONGEST", -1.0)
    facts, _ = answer_lens(
        subject_of(hookviz.load_model("shapesnet")), View(), {"lens": "occlusion"}, ignore_report
    )
    assert facts["ofSample"]


def test_no_lens_of_that_name_is_said() -> None:
    with pytest.raises(NotThereError, match="fly"):
        answer_lens(
            subject_of(hookviz.load_model("shapesnet")), View(), {"lens": "fly"}, ignore_report
        )
