"""Which channel a learner has picked in a live part, apart from the one that the link has."""

import streamlit as st


def picked(key: str, count: int, default: int) -> int:
    """The channel that was picked in the part of that key, of so many; at first the default."""
    channel: int = st.session_state.get(_name(key), default)
    return channel if 0 <= channel < count else default


def keep(key: str, channel: int, _cell: tuple[int, int] | None = None) -> None:
    """Pick a channel, as a click in the part's grid does."""
    st.session_state[_name(key)] = channel


def _name(key: str) -> str:
    return f"_{key} channel"
