"""Set the page's style sheet and first scripts, and the colours that drawn pictures have too."""

import json
from functools import cache
from pathlib import Path

import streamlit as st

from hookviz.drawing.colormaps import (
    ACCENT,
    INF_COLOUR,
    LEVELS,
    NAN_COLOUR,
    PROJECTED,
    PROJECTED_SIGNED,
)
from hookviz.drawing.palette import palette_of
from hookviz.explorer.subject import Colours
from hookviz.language.catalogs import ENGLISH, script_words, signs
from hookviz.ui.languages import in_link

_HERE = Path(__file__).parent
_SHEETS = ("style.css", "presenting/presenting.css")
_SCRIPTS = (
    *("early.js", "terms.js", "history.js"),
    *("presenting/slides.js", "presenting/presenting.js"),  # after history.js, whose keys are first
)
_LIGHT, _DARK = "RdBu_r", "berlin"
PRESENT = "present"
"""What the link calls the presenter's view; it is there where that is ``"1"``."""


def is_presenting() -> bool:
    """Return whether the page is shown to a class, on a projector."""
    return st.query_params.get(PRESENT) == "1"


def diverging() -> str:
    """Return the colormap for signed values: zero fades into the page, be it dark or light.

    Before a class it is the one that a projector takes least from.
    """
    if is_presenting():
        return PROJECTED_SIGNED
    return _DARK if st.context.theme.type == "dark" else _LIGHT


def sequential() -> str:
    """Return the colormap for values nowhere negative: zero is the page's own black or white.

    Before a class it is the one that a projector takes least from.
    """
    if is_presenting():
        return PROJECTED
    return "inferno" if st.context.theme.type == "dark" else "gray_r"


def colours() -> Colours:
    """Return the page's colormaps, for what is drawn outside of its run."""
    return Colours(diverging(), sequential())


@cache
def style() -> str:
    """Return the style sheet after the variables that it and the components take colours from.

    ``--hv-NAME`` is a diverging colormap level by level, for what a component paints;
    ``--hv-NAME-below`` and ``--hv-NAME-above`` are its blue and its red, for bars.
    """
    variables = {"accent": ACCENT, "nan": NAN_COLOUR, "inf": INF_COLOUR}
    for name in (_LIGHT, _DARK, PROJECTED_SIGNED):
        colours = [f"#{bytes(colour).hex()}" for colour in palette_of(name)[:LEVELS, :3]]
        variables[name] = " ".join(colours)
        variables[f"{name}-below"] = colours[LEVELS // 8]
        variables[f"{name}-above"] = colours[LEVELS - 1 - LEVELS // 8]
    lines = "".join(f"--hv-{name}: {value};" for name, value in variables.items())
    sheets = "\n".join((_HERE / name).read_text("utf-8") for name in _SHEETS)
    return f"<style>:root {{{lines}}}\n{sheets}</style>"


@cache
def head(language: str = ENGLISH) -> str:
    """Return what stands before the page: its style, and scripts that run as soon as it begins.

    First of all comes what they say in `language`. Keys that come early are kept, words are
    explained, the browser's history takes one step for each thing that a person does, and the
    presenter's view has its keys and its slides.
    """
    scripts = "".join(f"<script>{(_HERE / name).read_text('utf-8')}</script>" for name in _SCRIPTS)
    ready = '<script>window.dispatchEvent(new Event("hookviz:head"));</script>'
    return style() + _words(language) + scripts + ready


def _words(language: str) -> str:
    """Return, as script, the page's language for screen readers, the words and decimal point."""
    words = json.dumps(dict(script_words(language))).replace("</", "<\\/")
    point, _ = signs(language)
    code = f"document.documentElement.lang = {json.dumps(in_link(language))};"
    code += f" window.hookvizPoint = {json.dumps(point)};"
    return f"<script>{code} window.hookvizWords = {words};</script>"
