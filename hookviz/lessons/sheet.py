"""Print a lesson as a sheet: its text and questions, with or without the answers."""

import io
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.platypus import Flowable, KeepTogether, Paragraph, SimpleDocTemplate, Spacer

from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.lessons import prose
from hookviz.lessons.lesson import Block, Lesson, Live, Question, Text
from hookviz.lessons.part import Fact, parts
from hookviz.lessons.sheet_text import Styles, flowing, marked_up

_MARGIN = 20 * mm

Facts = Sequence[Mapping[str, Fact]]
"""The facts of each step, in their order."""


def sheet(lesson: Lesson, facts: Facts, shown_on: str, *, answers: bool) -> bytes:
    """Return the lesson as a PDF of A4 pages, in the language that is spoken.

    Args:
        lesson: what is printed.
        facts: what its texts name in braces, of each step.
        shown_on: the model and the image that the numbers are of, in words.
        answers: whether right answers are marked, and every answer has its reason.
    """
    file = io.BytesIO()
    title = prose.translated(lesson.title)
    document = SimpleDocTemplate(
        file,
        pagesize=A4,
        leftMargin=_MARGIN,
        rightMargin=_MARGIN,
        topMargin=_MARGIN,
        bottomMargin=_MARGIN,
        title=title,
        author="HookViz",
        invariant=1,
    )
    document.build(list(_SheetWriter(lesson, answers=answers).story(title, facts, shown_on)))
    return file.getvalue()


class _SheetWriter:
    """Makes reportlab's paragraphs of a lesson's blocks, counting its questions."""

    def __init__(self, lesson: Lesson, *, answers: bool) -> None:
        self._lesson = lesson
        self._answers = answers
        self._questions = 0
        self._styles = Styles()

    def story(self, title: str, facts: Facts, shown_on: str) -> Iterator[Flowable]:
        """Yield the whole lesson, paragraph by paragraph."""
        styles = self._styles
        kind = say("with the answers") if self._answers else say("questions")
        yield Paragraph(escape(f"{title} · {kind}"), styles.title)
        if self._lesson.summary:
            yield Paragraph(escape(prose.translated(self._lesson.summary)), styles.body)
        numbers = say("All numbers are of {shown_image}.", shown_image=shown_on)
        yield Paragraph(escape(numbers), styles.small)
        for step, of_step in zip(self._lesson.steps, facts, strict=True):
            yield self._line(step.title, of_step, step.line, styles.heading)
            for block in step.blocks:
                yield from self._printed(block, of_step)

    def _printed(self, block: Block, facts: Mapping[str, Fact]) -> Iterator[Flowable]:
        match block:
            case Text():
                try:
                    tokens = prose.filled(block.words, facts, self._lesson.file, block.line)
                except HookVizError as error:
                    yield Paragraph(escape(str(error)), self._styles.small)
                    return
                yield from flowing(tokens, self._styles)
            case Live():
                message = say(
                    "On the screen: {sentence}", sentence=say(parts()[block.part].sentence)
                )
                yield Paragraph(escape(message), self._styles.small)
            case Question():
                yield self._question(block, facts)

    def _question(self, question: Question, facts: Mapping[str, Fact]) -> Flowable:
        self._questions += 1
        styles, line = self._styles, question.line
        lines = [self._line(question.words, facts, line, styles.asked, f"{self._questions}. ")]
        for position, answer in enumerate(question.answers):
            mark = styles.tick if self._answers and answer.right else styles.box
            before = f"{mark} {chr(ord('A') + position)}  "
            lines.append(self._line(answer.words, facts, line, styles.answer, before))
            if self._answers:
                lines.append(self._line(answer.why, facts, line, styles.reason))
        return KeepTogether([*lines, Spacer(1, 6)])

    def _line(
        self,
        words: str,
        facts: Mapping[str, Fact],
        line: int,
        style: ParagraphStyle,
        before: str = "",
    ) -> Paragraph:
        """Return a line of text, or what is wrong with it."""
        try:
            tokens = prose.filled(words, facts, self._lesson.file, line)
        except HookVizError as error:
            return Paragraph(escape(f"{before}{error}"), style)
        inline = (marked_up(token, self._styles) for token in tokens if token.type == "inline")
        return Paragraph(escape(before) + " ".join(inline), style)
