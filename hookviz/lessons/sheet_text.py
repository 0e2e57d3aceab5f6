"""Set Markdown as the text of a printed sheet: its styles, its fonts, its paragraphs and tables."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from markdown_it.token import Token
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.platypus import Flowable, Paragraph, Preformatted
from reportlab.platypus import Table as PdfTable

from hookviz.drawing.fonts import font_file
from hookviz.language.speaking import current

_UNSPACED = ("zh", "ja", "ko")  # languages whose lines break between any two signs
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
            wordWrap="CJK" if current().startswith(_UNSPACED) else None,
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


def flowing(tokens: Sequence[Token], styles: Styles) -> Iterator[Flowable]:
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
            rows[-1].append(Paragraph(marked_up(token, styles), styles.small))
        elif token.type == "inline":
            indented = ParagraphStyle("item", styles.body, leftIndent=6 * max(0, token.level - 1))
            yield Paragraph(escape(sign) + marked_up(token, styles), indented)
            sign = ""


def marked_up(token: Token, styles: Styles) -> str:
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
