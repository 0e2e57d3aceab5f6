"""What is printed, by its flowing text; and that it becomes a PDF with its fonts in it."""

from pathlib import Path

from hookviz.lessons.lesson import parse_lesson
from hookviz.lessons.sheet import _SheetWriter, sheet
from hookviz.ui.lessons.catalog import parts

LESSON = parse_lesson(
    """---
title: A <title> & more
summary: What **for**.
---
# Step {count}
A *text* with {count} and `a < b` & more.

1. one
2. two

| a | b |
|---|---|
| c | {count} |

```python
x = 1 < 2
```

```live pixels
```

```question
How many?
- [ ] none
  No reason.
- [x] {count}
  Computed.
```

{unknown} is told.
""",
    Path("01-mine.md"),
    "mine",
    parts(),
)
FACTS = [{"count": 42}]


def story(*, answers: bool) -> str:
    """All text of the sheet in order."""
    found = []
    for piece in _SheetWriter(LESSON, answers=answers).story("A <title> & more", FACTS, "this"):
        for each in getattr(piece, "_content", [piece]):
            if hasattr(each, "getPlainText"):
                found.append(each.getPlainText())
            elif hasattr(each, "_cellvalues"):
                found.append(
                    " ".join(cell.getPlainText() for row in each._cellvalues for cell in row)
                )
            elif hasattr(each, "lines"):
                found.extend(each.lines)
    return "\n".join(found)


def test_questions_are_printed_without_answers_and_with_them() -> None:
    text = story(answers=False)
    for part in (
        "A <title> & more · questions",
        "What **for**.",
        "All numbers are of this.",
        "Step 42",
        "A text with 42 and a < b & more.",
        "1. one",
        "2. two",
        "a b c 42",
        "x = 1 < 2",
        "On the screen: The image as the network gets it",
        "1. How many?",
        "☐ A none",
        "☐ B 42",
        "No live part of this step has the fact 'unknown'",
    ):
        assert part in text, part
    assert "✓" not in text
    assert "Computed." not in text
    text = story(answers=True)
    assert "☐ A none\nNo reason.\n✓ B 42\nComputed." in text.replace("  ", " ")
    made = sheet(LESSON, FACTS, "this", answers=True)
    assert made.startswith(b"%PDF-")
    assert b"/FontFile2" in made
    assert b"DejaVuSans" in made
    assert made == sheet(LESSON, FACTS, "this", answers=True)
