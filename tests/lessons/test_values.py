from pathlib import Path

import pytest

from hookviz.errors import LessonError
from hookviz.lessons.values import Value, read_values

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
