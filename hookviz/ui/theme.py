"""The page's style sheet and first scripts, and the colours that drawn pictures have too."""

from functools import cache
from pathlib import Path

import streamlit as st

from hookviz.drawing.colormaps import INF_COLOUR, LEVELS, NAN_COLOUR
from hookviz.drawing.colours import ACCENT
from hookviz.drawing.palette import palette_of

_HERE = Path(__file__).parent
_LIGHT, _DARK = "RdBu_r", "berlin"


def diverging() -> str:
    """The colormap for signed values: zero fades into the page, be it dark or light."""
    return _DARK if st.context.theme.type == "dark" else _LIGHT


def signed_colour(value: float) -> str:
    """The CSS colour of a bar for `value`: blue below zero, red from there on."""
    return f"var(--hv-{diverging()}-{'below' if value < 0 else 'above'})"


@cache
def style() -> str:
    """The style sheet after the variables that it and the components take their colours from.

    ``--hv-NAME`` is a diverging colormap level by level, for what a component paints;
    ``--hv-NAME-below`` and ``--hv-NAME-above`` are its blue and its red, for bars.
    """
    variables = {"accent": ACCENT, "nan": NAN_COLOUR, "inf": INF_COLOUR}
    for name in (_LIGHT, _DARK):
        colours = [f"#{bytes(colour).hex()}" for colour in palette_of(name)[:LEVELS, :3]]
        variables[name] = " ".join(colours)
        variables[f"{name}-below"] = colours[LEVELS // 8]
        variables[f"{name}-above"] = colours[LEVELS - 1 - LEVELS // 8]
    lines = "".join(f"--hv-{name}: {value};" for name, value in variables.items())
    return f"<style>:root {{{lines}}}\n{(_HERE / 'style.css').read_text('utf-8')}</style>"


@cache
def head() -> str:
    """What stands before the page: its style, and scripts that run as soon as it begins.

    Keys that come early are kept, words are explained, and the browser's history takes one step for
    each thing that a person does.
    """
    files = ("early.js", "terms.js", "history.js")
    scripts = "".join(f"<script>{(_HERE / name).read_text('utf-8')}</script>" for name in files)
    return style() + scripts
