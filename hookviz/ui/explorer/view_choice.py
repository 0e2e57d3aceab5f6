"""Choose how the channels of a stream are drawn, in a row above them."""

import streamlit as st

from hookviz.drawing.colormaps import COLORMAPS
from hookviz.drawing.scales import SCALES
from hookviz.explorer.look import Look, look_of, sorts, tops
from hookviz.explorer.view import AUTOMATIC, View
from hookviz.language.saying import say
from hookviz.ui.linked_choice import linked_choice
from hookviz.ui.theme import colours


def pick_look(channels: int) -> Look:
    """Show the choices of order, how many, scale and colours, and return how channels are drawn."""
    with st.container(horizontal=True, key="hv-view", gap="small"):
        link = {
            "sort": _choice(say("Sort by"), sorts(alike=False), "sort"),
            "top": _choice(say("Channels"), tops(channels), "top"),
            "scale": _choice(say("Scale"), (AUTOMATIC, *SCALES), "scale"),
            "colours": _choice(say("Colours"), (AUTOMATIC, *COLORMAPS), "colours"),
        }
    return look_of(View.of_link(link), colours(), channels)


def _choice(label: str, options: tuple[str, ...], key: str) -> str:
    """Show a choice of `options`; the style sheet alone says what it is a choice of."""
    chosen = linked_choice(
        st.selectbox,
        label,
        options,
        key,
        first=options[0],
        is_bound=False,  # the explorer, which a frozen frame opens, has the same choices
        label_visibility="collapsed",
        width=158,
    )
    return chosen or options[0]
