"""Choose how the channels are drawn, in a row above them: order, how many, scale and colours."""

from collections.abc import Sequence

import streamlit as st

from hookviz.drawing.colormaps import COLORMAPS
from hookviz.drawing.scales import SCALES
from hookviz.drawing.statistics import SORTS
from hookviz.language.saying import mark, say
from hookviz.ui.linked_choice import linked_choice
from hookviz.ui.state import View
from hookviz.ui.theme import diverging, sequential

AUTOMATIC = mark("automatic")
_EVERY = mark("all")


def pick_view(channels: int, sorts: Sequence[str] = tuple(SORTS)) -> View:
    """Show the choices, the order one of `sorts`, and return what was chosen or `AUTOMATIC`."""
    with st.container(horizontal=True, key="hv-view", gap="small"):
        sort = _choice(say("Sort by"), tuple(sorts), "sort")
        counts = (_EVERY, *(str(count) for count in (16, 64, 256) if count < channels))
        top = _choice(say("Channels"), counts, "top")
        scale = _choice(say("Scale"), (AUTOMATIC, *SCALES), "scale")
        colours = _choice(say("Colours"), (AUTOMATIC, *COLORMAPS), "colours")
    return View(
        sort=sort,
        top=None if top == _EVERY else int(top),
        scale=scale,
        colormap=None if colours == AUTOMATIC else colours,
    )


def resolve_automatic(view: View) -> tuple[str, str, str]:
    """Return a view's scale, its colormap, and that of a layer that has values below zero.

    One language of colours everywhere: blue below zero, red above, zero neutral, be the page dark
    or light. A layer that is nowhere negative runs from the page's own black or white at 0.
    """
    scale = "balanced" if view.scale == AUTOMATIC else view.scale
    if view.colormap is not None:
        return scale, view.colormap, view.colormap
    return scale, sequential(), diverging()


def _choice(label: str, options: tuple[str, ...], key: str) -> str:
    """Show a choice of `options`; the style sheet alone says what it is a choice of."""
    chosen = linked_choice(
        st.selectbox,
        label,
        options,
        key,
        first=options[0],
        label_visibility="collapsed",
        width=158,
    )
    return chosen or options[0]
