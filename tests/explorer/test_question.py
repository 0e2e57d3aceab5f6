"""Questions and answers as they are without facts or a picture; errors that a person can cause."""

import hookviz
from hookviz.explorer.question import (
    Answer,
    NotThereError,
    Question,
    QuestionError,
    ignore_report,
)


def test_a_question_needs_no_facts_and_an_answer_no_picture() -> None:
    assert Question("tiles").facts == {}
    assert Answer({"rows": 3}).data == b""
    ignore_report(Answer({}, b"PNG"))


def test_both_errors_are_ones_that_a_person_can_cause() -> None:
    assert issubclass(QuestionError, hookviz.HookVizError)
    assert issubclass(NotThereError, hookviz.HookVizError)
    assert not issubclass(NotThereError, QuestionError)
