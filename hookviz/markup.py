"""HTML fragments for notebooks, with everything that they are given escaped."""

import base64
from collections.abc import Sequence
from html import escape

_NUMBER = ' style="text-align: right"'


def element(tag: str, text: str, style: str = "") -> str:
    """A text in an element, ``<p>NaN &lt; 3</p>``."""
    styled = f' style="{escape(style)}"' if style else ""
    return f"<{tag}{styled}>{escape(text)}</{tag}>"


def table(head: Sequence[str], rows: Sequence[Sequence[str | int | float]]) -> str:
    """Rows under their headings; numbers end flush, and have 6 significant digits at most."""
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    headings = "".join(element("th", name) for name in head)
    return f"<table><thead><tr>{headings}</tr></thead><tbody>{body}</tbody></table>"


def image(png: bytes, alt: str) -> str:
    """A PNG inside the HTML itself, in its own size or as wide as there is room."""
    return (
        f'<img src="{data_url(png)}" alt="{escape(alt)}" '
        'style="max-width: 100%; image-rendering: pixelated"/>'
    )


def data_url(picture: bytes, kind: str = "png") -> str:
    """Return an image file of that kind, such as ``"jpeg"``, as a URL that holds its bytes."""
    return f"data:image/{kind};base64," + base64.b64encode(picture).decode("ascii")


def details(summary: str, html: str, *, is_open: bool) -> str:
    """`html`, which is markup already, under a line of text that folds it away."""
    state = ' open=""' if is_open else ""
    return f"<details{state}>{element('summary', summary)}{html}</details>"


def _cell(cell: str | float) -> str:
    if isinstance(cell, str):
        return element("td", cell)
    text = f"{cell:.6g}" if isinstance(cell, float) else str(cell)
    return f"<td{_NUMBER}>{escape(text)}</td>"
