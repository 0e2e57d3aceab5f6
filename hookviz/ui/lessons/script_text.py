"""Write a script as HTML: in a box that a keyboard can scroll, or folded below a line."""

import io
import keyword
import tokenize
from collections.abc import Collection
from functools import cache
from html import escape
from pathlib import Path


def folded_html(text: str, title: str) -> str:
    """Return the code folded below a line that opens it."""
    lines = len(text.splitlines())
    summary = f"<summary>{escape(title)} <span>({lines})</span></summary>"
    return f'<details class="hv-script-folded">{summary}{script_html(text, (), title)}</details>'


def script_html(text: str, constants: Collection[str], label: str) -> str:
    """Return the script in a box that can be scrolled by keyboard, named by `label`."""
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
    """Return a piece of code as HTML: keywords bold, comments fainter, chosen constants marked."""
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
