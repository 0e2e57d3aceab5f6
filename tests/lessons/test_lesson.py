"""A lesson's file, whole, broken and hostile; every fault is told with its file and line."""

from contextlib import suppress
from pathlib import Path

import pytest

from hookviz.errors import LessonError
from hookviz.lessons.lesson import (
    LARGEST,
    Answer,
    Lesson,
    Live,
    Question,
    Text,
    Value,
    parse_lesson,
    read_lesson,
    read_question,
    read_values,
)
from hookviz.ui.lessons.catalog import parts

FILE = Path("07-mine.md")
SHORT = Path("01-a.md")
LESSON = """---
title: My lesson
summary: What it is for.
minutes: 7
model: ShapesNet
sample: star
---

# First step

Two lines
are one paragraph.

- a list
- of two

```python
print("{shown as it stands}")
```

```live pixels
window: 6
```

# Second step

```question
What is it?
- [ ] No
  Because it
  is not.
- [x] Yes
  It is.
```

| a | b |
|---|---|
| c | d |
"""


def parsed(text: str) -> Lesson:
    return parse_lesson(text, FILE, "mine", parts())


def with_body(body: str) -> str:
    return f"---\ntitle: T\n---\n# Step\n{body}\n"


def test_a_file_becomes_a_lesson(tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_text(LESSON, "utf-8")
    lesson = read_lesson(file, parts())
    assert (lesson.slug, lesson.title) == ("mine", "My lesson")
    assert (lesson.summary, lesson.minutes) == ("What it is for.", 7)
    assert lesson.defaults == {"model": "ShapesNet", "sample": "star"}
    first, second = lesson.steps
    assert (first.title, first.line, second.title) == ("First step", 9, "Second step")
    assert first.blocks == (
        Text("Two lines are one paragraph.", 11),
        Text("- a list\n- of two", 14),
        Text('```python\nprint("{shown as it stands}")\n```', 17),
        Live(parts()["pixels"], {"window": "6", "across": "50", "down": "50"}, 21),
    )
    assert second.blocks[0] == Question(
        "What is it?",
        (Answer("No", False, "Because it is not."), Answer("Yes", True, "It is.")),
        27,
    )
    assert second.blocks[1] == Text("| a | b |\n|---|---|\n| c | d |", 36)


def test_line_ends_of_windows_and_links_to_https_are_fine(tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_bytes(b"\xef\xbb\xbf" + LESSON.replace("\n", "\r\n").encode())
    assert len(read_lesson(file, parts()).steps) == 2
    parsed(with_body("[a](https://example.org/x) [b](?lesson=all) [c](#top) <https://x.org>"))


QUESTION = "```question\nWhy?\n{}\n```"
BROKEN = {
    "no front matter": ("# Step\ntext", 1, "begins with its front matter"),
    "an empty file": ("", 1, "begins with its front matter"),
    "no end of it": ("---\ntitle: T\n# Step\ntext", 1, "has no end"),
    "no title": ("---\nminutes: 5\n---\n# Step\ntext", 1, "no title"),
    "an empty title": ("---\ntitle:\n---\n# Step\ntext", 1, "no title"),
    "an unknown key": ("---\ntitle: T\nsumary: S\n---\n# Step\nx", 3, "Did you mean 'summary'"),
    "a key twice": ("---\ntitle: T\ntitle: S\n---\n# Step\nx", 3, "stands here twice"),
    "minutes in words": ("---\ntitle: T\nminutes: five\n---\n# Step\nx", 3, "a whole number"),
    "an unknown sample": (
        "---\ntitle: T\nsample: catt\n---\n# Step\nx",
        3,
        "Did you mean 'cat'",
    ),
    "an unknown model": (
        "---\ntitle: T\nmodel: ShapeNet\n---\n# Step\nx",
        3,
        "Did you mean 'ShapesNet'",
    ),
    "no YAML": ("---\ntitle: [T\n---\n# Step\nx", 2, "can't be read as YAML"),
    "no mapping": ("---\n- title\n---\n# Step\nx", 2, "name: value"),
    "a list as a value": ("---\ntitle: [a, b]\n---\n# Step\nx", 2, "plain words"),
    "text before a step": ("---\ntitle: T\n---\ntext", 4, "Before the first step"),
    "no step": ("---\ntitle: T\n---\n", 4, "has no step"),
    "an empty step": ("---\ntitle: T\n---\n# One\n# Two\ntext", 4, "stands nothing"),
    "a heading without words": ("---\ntitle: T\n---\n#\ntext", 4, "no words"),
    "an unknown part": (with_body("\n```live pixel\n```"), 6, "Did you mean 'pixels'"),
    "a part without a name": (with_body("```live\n```"), 5, "the name of one part"),
    "an unknown option": (with_body("```live pixels\nwindows: 6\n```"), 6, "Did you mean 'window'"),
    "a wrong option": (with_body("```live pixels\nwindow: 99\n```"), 6, "from 4 to 12"),
    "a wrong choice": (with_body("```live kernel\nkernel: blurr\n```"), 6, "Did you mean 'blur'"),
    "a part in a list": (with_body("- x\n\n  ```live pixels\n  ```"), 7, "left margin"),
    "a part without an end": (with_body("```live pixels\nwindow: 6"), 5, "has no end"),
    "no right answer": (with_body(QUESTION.format("- [ ] a\n  b\n- [ ] c\n  d")), 5, "as right"),
    "one answer": (with_body(QUESTION.format("- [x] a\n  b")), 5, "has 1 answers; 2 to 6"),
    "seven answers": (with_body(QUESTION.format("- [x] a\n  b\n" * 7)), 5, "has 7 answers"),
    "no reason": (with_body(QUESTION.format("- [x] a\n- [ ] c\n  d")), 7, "no reason"),
    "an answer without words": (
        with_body(QUESTION.format("- [x]\n  b\n- [ ] c\n  d")),
        7,
        "no words",
    ),
    "no words": (with_body("```question\n- [x] a\n  b\n- [ ] c\n  d\n```"), 5, "no words"),
    "text between answers": (
        with_body(QUESTION.format("- [x] a\n  b\nwhat\n- [ ] c\n  d")),
        9,
        "stand answers alone",
    ),
    "braces that name nothing": (with_body("one\ntwo { three"), 6, "Braces name a fact"),
    "a format of nobody's": (with_body("{width:>99999999}"), 5, "format that is not known"),
    "an attribute of a fact": (with_body("{width.__class__}"), 5, "Braces name a fact"),
}


@pytest.mark.parametrize(("text", "line", "says"), BROKEN.values(), ids=BROKEN)
def test_a_fault_is_told_with_its_line(text: str, line: int, says: str) -> None:
    with pytest.raises(LessonError) as caught:
        parsed(text)
    assert str(caught.value).startswith(f"07-mine.md, line {line}: ")
    assert says in str(caught.value)


HOSTILE = {
    "a script": "<script>alert(1)</script>",
    "a script in a line": "text <script>alert(1)</script>",
    "a picture's handler": "<img src=x onerror=alert(1)>",
    "a style": "<style>body{display:none}</style>",
    "a frame": "<iframe src='https://example.org'></iframe>",
    "a comment": "<!-- -->",
    "a script's link": "[here](javascript:alert(1))",
    "one in disguise": "[here](java&#115;cript:alert(1))",
    "one in capitals": "[here](JaVaScRiPt:alert(1))",
    "a link by reference": "[here][a]\n\n[a]: javascript:alert(1)",
    "an autolink": "<javascript:alert(1)>",
    "data": "[here](data:text/html,<b>)",
    "a file": "[here](file:///etc/passwd)",
    "plain http": "[here](http://example.org)",
    "without a scheme": "[here](//example.org)",
    "a path": "[here](/health)",
    "a picture": "![x](https://example.org/x.png)",
    "a picture of data": "![x](data:image/svg+xml;base64,AAAA)",
    "in a list": "- <b onclick=alert(1)>x</b>",
    "in a table": "| a |\n|---|\n| <img src=x onerror=alert(1)> |",
    "in a question": "```question\n<script>x</script>\n- [x] a\n  b\n- [ ] c\n  d\n```",
    "in an answer": "```question\nWhy?\n- [x] [a](javascript:x)\n  b\n- [ ] c\n  d\n```",
    "in a reason": "```question\nWhy?\n- [x] a\n  <img src=x onerror=y>\n- [ ] c\n  d\n```",
    "too deep": "> " * 60 + "x",
    "lists too deep": "\n".join("  " * depth + "- x" for depth in range(60)),
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_what_could_bring_a_script_in_is_refused(body: str) -> None:
    with pytest.raises(LessonError, match=r"^07-mine\.md, line \d+: "):
        parsed(with_body(body))


@pytest.mark.parametrize(
    "title", ["<script>alert(1)</script>", "[x](javascript:alert(1))", "![x](https://x.org/y)"]
)
def test_headings_are_no_way_in(title: str) -> None:
    with pytest.raises(LessonError):
        parsed(f"---\ntitle: T\n---\n# {title}\ntext")


@pytest.mark.parametrize(
    "yaml",
    [
        "title: !!python/object/apply:os.system [echo]",
        "title: !mine x",
        "title: &a [x, x]\nsummary: *a",
        "title: " + "[" * 3000,
        "title: " + "x" * 5000,
        "title: {a: {b: c}}",
        "? [a]\n: b",
    ],
)
def test_yaml_makes_no_objects_and_no_bombs(yaml: str) -> None:
    with pytest.raises(LessonError, match=r"07-mine\.md, line"):
        parsed(f"---\n{yaml}\n---\n# Step\ntext")


def test_files_that_are_no_lessons_are_refused(tmp_path: Path) -> None:
    def refused(name: str, data: bytes, says: str) -> None:
        (tmp_path / name).write_bytes(data)
        with pytest.raises(LessonError, match=says):
            read_lesson(tmp_path / name, parts())

    refused("01-large.md", b"x" * (LARGEST + 1), "more than 50,000 bytes")
    refused("01-latin.md", b"---\ntitle: T\n---\n# \xe9\n", r"line 4: This is not UTF-8")
    refused("01-null.md", b"---\ntitle: T\n---\n# a\x00\n", r"line 4: .*control character")
    refused("My lesson.md", LESSON.encode(), "name such as")
    refused("01-all.md", LESSON.encode(), "name such as")
    with pytest.raises(LessonError, match="can't be read"):
        read_lesson(tmp_path / "01-none.md", parts())


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "piece", ["[", "*a ", "`", "| a ", "![", "<", "(", "> ", "- ", "_a*", "{", "\\"]
)
def test_the_largest_file_of_one_piece_ends(piece: str) -> None:
    """Whether it is a lesson or not: nothing in it takes for ever, or ends Python."""
    with suppress(LessonError):
        parsed(with_body(piece * ((LARGEST - 100) // len(piece))))


def test_values_are_the_text_as_written_with_its_line() -> None:
    text = "# a comment\nname: 0.50\n\nyes: no\nempty:\nwords: 'a: b'"
    assert read_values(text, SHORT, 10) == {
        "name": Value("0.50", 11),
        "yes": Value("no", 13),
        "empty": Value("", 14),
        "words": Value("a: b", 15),
    }
    assert read_values("", SHORT, 1) == {}


@pytest.mark.parametrize("text", ["words", "- a", "a: [1]", "a: {b: c}", "a: !x y", "a: 1\na: 2"])
def test_anything_else_is_told_with_its_line(text: str) -> None:
    with pytest.raises(LessonError, match=r"^01-a\.md, line (3|4): "):
        read_values(text, SHORT, 3)


def test_words_and_reasons_of_a_question_may_take_several_lines() -> None:
    text = "Why\nis it?\n\n- [X] a {mean:.2f}\n  because\n\n  of **b**\n* [ ] c\n\tno\n"
    question = read_question(text, SHORT, 4)
    assert question.words == "Why is it?"
    assert question.line == 4
    assert question.answers == (
        Answer("a {mean:.2f}", True, "because of **b**"),
        Answer("c", False, "no"),
    )
