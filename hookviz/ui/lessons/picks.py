"""What a learner picks inside a live part, kept in the session, and how the explorer gets it."""

from collections.abc import Mapping
from typing import TypeVar

import streamlit as st

Value = TypeVar("Value")


def picked(key: str, name: str, default: Value) -> Value:
    """What was picked of that name in the part of that key; `default` before anything was."""
    kept = st.session_state.get(_place(key, name), default)
    return kept if isinstance(kept, type(default)) else default


def pick(key: str, name: str, value: object) -> None:
    """Keep a pick: for a component's callback, before the part is drawn again."""
    st.session_state[_place(key, name)] = value


def remember_link(key: str, link: Mapping[str, str]) -> None:
    """Have the way to the explorer lead to this, of what the part shows now."""
    st.session_state[_place(key, "link")] = dict(link)


def remembered_link(key: str) -> Mapping[str, str]:
    """What `remember_link` kept last; nothing before."""
    link: Mapping[str, str] = st.session_state.get(_place(key, "link"), {})
    return link


def _place(key: str, name: str) -> str:
    return f"_picked {key} {name}"  # a key that no widget has can't be set from outside
