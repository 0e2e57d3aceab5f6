"""Lay out what a notebook shows of a panel: a title, HTML that is escaped already, a caption."""

from hookviz import markup

INK = "#7f7f7f"
"""Read on a white notebook and on a dark one: nobody tells us which it is."""

EDGES = {"good": "#2e8b57", "bad": "#c0392b", "note": "#2f6fb0"}
"""The colour beside a sentence of that tone."""


def titled(title: str, html: str, caption: str) -> str:
    """Put a title above HTML and a caption below it, both escaped."""
    below = markup.element("p", caption, f"color: {INK}") if caption else ""
    return f"{markup.element('h4', title)}{html}{below}"
