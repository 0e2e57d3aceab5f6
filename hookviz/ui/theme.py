"""Set the page's style sheet and first scripts, and the colours that drawn pictures have too."""

import json
from functools import cache
from pathlib import Path

import streamlit as st

from hookviz.drawing.colormaps import COLORMAPS, PROJECTED, PROJECTED_SIGNED
from hookviz.explorer.client_files import (
    CLIENT,
    DARK,
    LIGHT,
    bundle,
    client_words,
    colour_variables,
    scope,
    sheet,
)
from hookviz.explorer.subject import Colours
from hookviz.language.catalogs import ENGLISH
from hookviz.language.saying import say
from hookviz.ui.link import view_words, word

_HERE = Path(__file__).parent
_SHEETS = ("style.css", "presenting/presenting.css")
_SCRIPTS = (
    *("early.js", "address.js"),
    *("presenting/slides.js", "presenting/presenting.js"),  # which read the address
)
PRESENT = "present"
"""Link parameter: ``"1"`` for the presenter's view."""


def is_presenting() -> bool:
    """Return whether the presenter's view is on."""
    return word(PRESENT) == "1"


def diverging() -> str:
    """Return the colormap for signed values: zero has the page's colour, dark or light.

    In the presenter's view it is the one that a projector distorts least.
    """
    if is_presenting():
        return PROJECTED_SIGNED
    return _of_theme().diverging


def sign_words() -> dict[str, str]:
    """Return the names of the colours of signed values above and below zero."""
    colours = COLORMAPS[diverging()]
    return {"above": say(colours.high), "below": say(colours.low)}


def sequential() -> str:
    """Return the colormap for values without negative ones: zero is the page's black or white.

    In the presenter's view it is the one that a projector distorts least.
    """
    if is_presenting():
        return PROJECTED
    return _of_theme().sequential


def _of_theme() -> Colours:
    return DARK if st.context.theme.type == "dark" else LIGHT


def colours() -> Colours:
    """Return the page's colormaps, for threads outside of its run."""
    return Colours(diverging(), sequential())


@cache
def style() -> str:
    """Return the style sheet after the variables of colours for it and the components."""
    lines = "".join(f"{name}: {value};" for name, value in colour_variables().items())
    sheets = "\n".join(sheet(_HERE / name) for name in _SHEETS)
    return f"<style>:root {{{lines}}}\n{sheets}</style>"


@cache
def head(language: str = ENGLISH) -> str:
    """Return the head of the page: its style, and scripts that run at its start.

    They have their words in `language`, keep early keys, explain words, write the explorer's view
    into the address, and handle the presenter's keys and slides.
    """
    texts = [(_HERE / name).read_text("utf-8") for name in _SCRIPTS]
    scripts = "".join(f"<script>{text}</script>" for text in (_terms(), *texts))
    ready = '<script>window.dispatchEvent(new Event("hookviz:head"));</script>'
    return style() + _words(language) + scripts + ready


def _terms() -> str:
    """Return the script that explains words, which runs once on a page."""
    file = CLIENT / "terms.js"
    begin = f"window.hookvizTerms ??= {scope(file)}.explainTerms(document.body) ?? true;"
    return f"{{\n{bundle(file)}{begin}\n}}"


def _words(language: str) -> str:
    """Return, as a script, the page's language, its words and decimal point."""
    facts = client_words(language)
    words = json.dumps(facts["words"]).replace("</", "<\\/")
    code = f"document.documentElement.lang = {json.dumps(facts['language'])};"
    code += f" window.hookvizPoint = {json.dumps(facts['point'])};"
    code += f" window.hookvizViewWords = {json.dumps(sorted(view_words()))};"
    return f"<script>{code} window.hookvizWords = {words};</script>"
