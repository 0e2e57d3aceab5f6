import pytest

from hookviz.classroom.question import (
    LONGEST_ANSWER,
    LONGEST_GUESS,
    LONGEST_QUESTION,
    read_guess,
    read_question,
)
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


def test_the_right_answer_is_one_of_those_that_there_are() -> None:
    assert read_question("?", ["a", "", "b"], right=1).right == 1
    assert read_question("?", "ab").right is None
    for number in (-1, 2):
        with pytest.raises(ClassroomError, match=f"no answer {number + 1} that could be right"):
            read_question("?", "ab", right=number)


def test_a_guess_is_one_short_line() -> None:
    assert read_guess("  cat\near\u202e s ") == "cat ear s"
    assert read_guess("\u200b \n") == ""
    assert len(read_guess("x" * 5000)) == LONGEST_GUESS
