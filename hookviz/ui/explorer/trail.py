"""Remember from which channel a person followed an input upstream, and lead back there."""

import streamlit as st

from hookviz.language.saying import say
from hookviz.types import Address
from hookviz.ui.state import choose_channel, plain

_KEY = "_trail"  # a key of session_state that no widget has can't be set from outside
_LONGEST = 20


def follow(layer: str, channel: int, upstream: str, input_channel: int) -> None:
    """Go from a channel to one of the channels that it is made of, and remember the way."""
    trail: list[tuple[str, int]] = st.session_state.setdefault(_KEY, [])
    trail.append((layer, channel))
    del trail[:-_LONGEST]
    choose_channel(input_channel, Address.read(upstream).layer)


def show_trail() -> None:
    """Show the last step of the way as a button that leads back, where there is one."""
    trail: list[tuple[str, int]] = st.session_state.get(_KEY, [])
    if trail:
        layer, channel = trail[-1]
        st.button(
            plain(say("channel {channel} of {layer}", channel=channel, layer=layer)),
            icon=":material/arrow_back:",
            type="tertiary",
            on_click=_back,
            key="trail",
        )


def _back() -> None:
    layer, channel = st.session_state[_KEY].pop()
    choose_channel(channel, layer)
