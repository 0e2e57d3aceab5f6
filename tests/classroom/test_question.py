import pytest

from hookviz.classroom.question import LONGEST_ANSWER, LONGEST_QUESTION, read_question, tally
from hookviz.errors import ClassroomError


def test_a_question_is_what_was_typed_in_one_line_each() -> None:
    question = read_question("  Which\nmap? ", ["A", "", "  B\t2 ", "\u202e", "<b>C</b>"])
    assert question.words == "Which map?"
    assert question.answers == ("A", "B 2", "<b>C</b>")
    assert read_question("?", "AB").number != question.number
    assert read_question("?", "AB").is_like(read_question("? ", "AB"))
    assert not read_question("?", "AB").is_like(read_question("?", "BA"))
    assert not question.is_like(None)


@pytest.mark.parametrize(
    ("words", "answers", "said"),
    [
        ("", ["a", "b"], "no words"),
        ("\u200b", ["a", "b"], "no words"),
        ("?", ["a"], "this one has 1"),
        ("?", list("abcdefg"), "this one has 7"),
        ("?", ["yes", "no", " yes "], "“yes” is there twice"),
        ("?" * (LONGEST_QUESTION + 1), ["a", "b"], "301 letters"),
        ("?", ["a", "b" * (LONGEST_ANSWER + 1)], "121 letters"),
    ],
)
def test_what_can_not_be_asked_is_told(words: str, answers: list[str], said: str) -> None:
    with pytest.raises(ClassroomError, match=said):
        read_question(words, answers)


def test_answers_are_counted() -> None:
    question = read_question("?", "abc")
    assert tally(question, [0, 2, None, 2, 1, 2]) == [1, 1, 3]
    assert tally(question, []) == [0, 0, 0]
