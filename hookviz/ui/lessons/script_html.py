"""A script as HTML: keywords bold, comments fainter, and the lines that can be chosen marked."""

import io
import keyword
import tokenize
from collections.abc import Collection
from functools import cache
from html import escape
from pathlib import Path


def script_html(text: str, constants: Collection[str], label: str) -> str:
    """The script in a box that can be scrolled by keyboard, which `label` is the name of."""
    lines = [line.rstrip("\n") for line in text.splitlines(keepends=True)]
    pieces: list[str] = []
    row, column = 1, 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
            continue
        while row < token.start[0]:
            pieces.append(escape(lines[row - 1][column:]) + "\n")
            row, column = row + 1, 0
        if token.type == tokenize.ENDMARKER:
            break
        pieces.append(escape(lines[row - 1][column : token.start[1]]))
        pieces.append(_marked(token, constants))
        row, column = token.end
    code = "".join(pieces)
    shown = f'<pre class="hv-script" tabindex="0" role="region" aria-label="{escape(label)}">'
    return f"<style>{_style()}</style>{shown}<code>{code}</code></pre>"


def _marked(token: tokenize.TokenInfo, constants: Collection[str]) -> str:
    """A piece of code, as it is to look."""
    text = escape(token.string)
    if token.type == tokenize.COMMENT:
        return f'<span class="comment">{text}</span>'
    if token.type == tokenize.NAME and keyword.iskeyword(token.string):
        return f"<b>{text}</b>"
    if token.type == tokenize.NAME and token.string in constants:
        return f"<mark>{text}</mark>"
    return text


@cache
def _style() -> str:
    return Path(__file__).with_suffix(".css").read_text("utf-8")
