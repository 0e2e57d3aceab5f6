from pathlib import Path

import pytest

from hookviz.errors import LessonError
from hookviz.lessons.blocks import Value, read_question, read_values
from hookviz.lessons.lesson import Answer

FILE = Path("01-a.md")


def test_values_are_the_text_as_written_with_its_line() -> None:
    text = "# a comment\nname: 0.50\n\nyes: no\nempty:\nwords: 'a: b'"
    assert read_values(text, FILE, 10) == {
        "name": Value("0.50", 11),
        "yes": Value("no", 13),
        "empty": Value("", 14),
        "words": Value("a: b", 15),
    }
    assert read_values("", FILE, 1) == {}


@pytest.mark.parametrize("text", ["words", "- a", "a: [1]", "a: {b: c}", "a: !x y", "a: 1\na: 2"])
def test_anything_else_is_told_with_its_line(text: str) -> None:
    with pytest.raises(LessonError, match=r"^01-a\.md, line (3|4): "):
        read_values(text, FILE, 3)


def test_words_and_reasons_of_a_question_may_take_several_lines() -> None:
    text = "Why\nis it?\n\n- [X] a {mean:.2f}\n  because\n\n  of **b**\n* [ ] c\n\tno\n"
    question = read_question(text, FILE, 4)
    assert question.words == "Why is it?"
    assert question.line == 4
    assert question.answers == (
        Answer("a {mean:.2f}", True, "because of **b**"),
        Answer("c", False, "no"),
    )
