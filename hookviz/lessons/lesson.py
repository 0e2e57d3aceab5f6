"""Define what a lesson is: steps of text, live parts and questions, as its file has them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hookviz.lessons.part import Part


@dataclass(frozen=True, slots=True)
class Text:
    """A block of Markdown: a paragraph, a list, a table.

    Attributes:
        words: as the file has it, with the names of facts in braces, such as ``{channels}``.
        line: of the file, from 1.
    """

    words: str
    line: int


@dataclass(frozen=True, slots=True)
class Live:
    """A live part of a lesson.

    Attributes:
        part: one of `hookviz.ui.lessons.parts`.
        options: what the file sets, by name, checked and with the defaults filled in.
        line: of the file, from 1.
    """

    part: Part
    options: Mapping[str, str]
    line: int


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that can be picked: what it says, whether it is right, and why or why not."""

    words: str
    right: bool
    why: str


@dataclass(frozen=True, slots=True)
class Question:
    """A prediction to make before what follows it is shown.

    Attributes:
        words: what is asked.
        answers: two to six, at least one of them right.
        line: of the file, from 1.
    """

    words: str
    answers: tuple[Answer, ...]
    line: int


Block = Text | Live | Question


@dataclass(frozen=True, slots=True)
class Step:
    """A slide: a heading and its blocks. What follows a question waits for the answer."""

    title: str
    blocks: tuple[Block, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson as its file has it: a title, its slides, and the model and image to open it with.

    Attributes:
        slug: the file's name without its number and ending; the link has it.
        title: its name.
        summary: one sentence: what one can do after it.
        minutes: how long it takes.
        steps: its slides in order.
        defaults: what the link has that opens it: ``model``, ``sample``, where the file names them.
        file: where it was read.
        number: its place among all lessons, from 1.
    """

    slug: str
    title: str
    summary: str
    minutes: int
    steps: tuple[Step, ...]
    defaults: Mapping[str, str] = field(default_factory=dict)
    file: Path = Path()
    number: int = 0
