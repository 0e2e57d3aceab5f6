"""Questions and answers as they are; which channel and cell a question is about, or why none."""

from typing import Any

import pytest

import hookviz
from hookviz.explorer.question import (
    Answer,
    NotThereError,
    Question,
    QuestionError,
    asked_cell,
    asked_number,
    ignore_report,
    is_below,
    written,
)
from tests.explorer.asking import NO_NUMBERS


def test_a_question_needs_no_facts_and_an_answer_no_picture() -> None:
    assert Question("tiles").facts == {}
    assert Answer({"rows": 3}).data == b""
    ignore_report(Answer({}, b"PNG"))


def test_both_errors_are_ones_that_a_person_can_cause() -> None:
    assert issubclass(QuestionError, hookviz.HookVizError)
    assert issubclass(NotThereError, hookviz.HookVizError)
    assert not issubclass(NotThereError, QuestionError)


@pytest.mark.parametrize("index", [0, 5])
def test_what_is_there_is_returned(index: int) -> None:
    assert asked_number({"channel": index}, "channel", 6, "conv1") == index
    assert asked_cell({"row": index, "column": 5 - index}, (6, 6), "conv1") == (index, 5 - index)


@pytest.mark.parametrize("given", [*NO_NUMBERS, 6])
@pytest.mark.parametrize("axis", ["channel", "row", "column"])
def test_what_is_not_there_is_refused_with_what_is(axis: str, given: object) -> None:
    with pytest.raises(NotThereError, match=rf"conv1 has no {axis} .*: its {axis}s are 0 to 5\."):
        asked_number({axis: given}, axis, 6, "conv1")


def test_a_cell_is_refused_by_the_axis_that_it_lacks() -> None:
    with pytest.raises(NotThereError, match="no column 4: its columns are 0 to 3"):
        asked_cell({"row": 1, "column": 4}, (6, 4), "conv1")


@pytest.mark.parametrize(("given", "there"), [(3, True), (2, False), (8, False), (7, True)])
def test_numbers_can_begin_elsewhere(given: int, there: bool) -> None:
    assert is_below(given, 8, 3) == there


@pytest.mark.parametrize("given", [*NO_NUMBERS, "x" * 10_000])
def test_whatever_is_given_fits_into_a_sentence(given: Any) -> None:
    assert len(written(given)) <= 40
