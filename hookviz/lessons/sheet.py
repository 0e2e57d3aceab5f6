"""Print a lesson as a sheet: its text and questions, with or without the answers.

Markdown becomes paragraphs and tables of reportlab, in fonts with every letter of the lesson.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from markdown_it.token import Token
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.platypus import (
    Flowable,
    KeepTogether,
    Paragraph,
    Preformatted,
    SimpleDocTemplate,
    Spacer,
)
from reportlab.platypus import Table as PdfTable

from hookviz.drawing.figures import font_file
from hookviz.errors import HookVizError
from hookviz.language.catalogs import is_unspaced
from hookviz.language.saying import say
from hookviz.language.speaking import current
from hookviz.lessons import prose
from hookviz.lessons.lesson import Block, Lesson, Live, Question, Text
from hookviz.lessons.part import Fact

_MARGIN = 20 * mm

Facts = Sequence[Mapping[str, Fact]]
"""The facts of each step, in their order."""


_TABLE = [("GRID", (0, 0), (-1, -1), 0.4, "#999999"), ("VALIGN", (0, 0), (-1, -1), "MIDDLE")]
_ENDINGS = {"body": "", "bold": "-Bold", "italic": "-Oblique", "mono": "Mono"}


class Styles:
    """Paragraph styles and fonts of a sheet, for the language that is spoken."""

    def __init__(self) -> None:
        self.fonts = _fonts()
        self.body = ParagraphStyle(
            "body",
            fontName=self.fonts["body"],
            fontSize=10.5,
            leading=16,
            spaceAfter=5,
            wordWrap="CJK" if is_unspaced(current()) else None,
        )
        self.small = ParagraphStyle("small", self.body, fontSize=8.5, leading=12)
        bold = self.fonts["bold"]
        self.title = ParagraphStyle("title", self.body, fontName=bold, fontSize=18, leading=24)
        self.heading = ParagraphStyle(
            "heading", self.title, fontSize=13, leading=18, spaceBefore=10, keepWithNext=1
        )
        self.code = ParagraphStyle(
            "code", self.body, fontName=self.fonts["mono"], fontSize=8.5, leading=11, leftIndent=8
        )
        self.asked = ParagraphStyle("asked", self.body, fontName=bold)
        self.answer = ParagraphStyle("answer", self.body, leftIndent=16, spaceAfter=2)
        face = pdfmetrics.getFont(self.fonts["body"]).face
        self.box, self.tick = (
            sign if ord(sign) in face.charToGlyph else plain
            for sign, plain in (("☐", "[  ]"), ("✓", "[x]"))
        )
        self.reason = ParagraphStyle("reason", self.small, leftIndent=34, spaceAfter=4)


def _flowing(tokens: Sequence[Token], styles: Styles) -> Iterator[Flowable]:
    """Yield paragraphs, lists, tables and code of a parsed text."""
    rows: list[list[Paragraph]] = []
    sign = ""
    for token in tokens:
        if token.type == "list_item_open":
            sign = f"{token.info}{token.markup} " if token.info else "• "
        elif token.type == "tr_open":
            rows.append([])
        elif token.type == "table_close":
            yield PdfTable(rows, hAlign="LEFT", style=_TABLE, spaceAfter=6)
            rows = []
        elif token.type in ("fence", "code_block"):
            yield Preformatted(token.content.rstrip(), styles.code, maxLineLength=96)
        elif token.type == "inline" and rows:
            rows[-1].append(Paragraph(_marked_up(token, styles), styles.small))
        elif token.type == "inline":
            indented = ParagraphStyle("item", styles.body, leftIndent=6 * max(0, token.level - 1))
            yield Paragraph(escape(sign) + _marked_up(token, styles), indented)
            sign = ""


def _marked_up(token: Token, styles: Styles) -> str:
    """Return a line of text in reportlab's own marks, everything else in it escaped."""
    marks = {
        "softbreak": " ",
        "hardbreak": "<br/>",
        "strong_open": f'<font name="{styles.fonts["bold"]}">',
        "em_open": f'<font name="{styles.fonts["italic"]}">',
        "strong_close": "</font>",
        "em_close": "</font>",
    }
    pieces = []
    for child in token.children or ():
        if child.type == "code_inline":
            pieces.append(f'<font name="{styles.fonts["mono"]}">{escape(child.content)}</font>')
        else:
            pieces.append(marks.get(child.type, escape(child.content)))
    return "".join(pieces)


def _fonts() -> Mapping[str, str]:
    """Register the fonts for body, bold, italic and code; the body's where one is missing."""
    file = font_file()
    names = {}
    for style, ending in _ENDINGS.items():
        relative = file.with_name(f"{file.stem}{ending}{file.suffix}")
        names[style] = _registered(relative if relative.is_file() else file)
    return names


def _registered(file: Path) -> str:
    if file.stem not in pdfmetrics.getRegisteredFontNames():
        pdfmetrics.registerFont(TTFont(file.stem, str(file)))
    return file.stem


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
                yield from _flowing(tokens, self._styles)
            case Live():
                message = say("On the screen: {sentence}", sentence=say(block.part.sentence))
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
        inline = (_marked_up(token, self._styles) for token in tokens if token.type == "inline")
        return Paragraph(escape(before) + " ".join(inline), style)
