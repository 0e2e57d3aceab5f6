from pathlib import Path

from hookviz.lessons.lesson import Answer
from hookviz.lessons.questions import read_question


def test_words_and_reasons_may_take_several_lines() -> None:
    text = "Why\nis it?\n\n- [X] a {mean:.2f}\n  because\n\n  of **b**\n* [ ] c\n\tno\n"
    question = read_question(text, Path("01-a.md"), 4)
    assert question.words == "Why is it?"
    assert question.line == 4
    assert question.answers == (
        Answer("a {mean:.2f}", True, "because of **b**"),
        Answer("c", False, "no"),
    )
