"""Keep in the session what a learner picks inside a live part, its controls, and its link."""

from collections.abc import Mapping
from typing import TypeVar

import streamlit as st

from hookviz.lessons.maps import Map
from hookviz.ui.state import Cell

Value = TypeVar("Value")


def picked(key: str, name: str, default: Value) -> Value:
    """Return what was picked of that name in a part; `default` before anything was."""
    value = st.session_state.get(_state_key(key, name), default)
    return value if isinstance(value, type(default)) else default


def pick(key: str, name: str, value: object) -> None:
    """Keep a pick: for a component's callback, before the part is drawn again."""
    st.session_state[_state_key(key, name)] = value


def picked_channel(key: str, count: int, default: int) -> int:
    """Return the channel that was picked in a part; `default` where it is none of `count`."""
    channel = picked(key, "channel", default)
    return channel if 0 <= channel < count else default


def pick_channel(key: str, channel: int, _cell: tuple[int, int] | None = None) -> None:
    """Pick a channel, as a click in the part's grid does."""
    pick(key, "channel", channel)


def picked_cell(key: str, values: Map) -> Cell:
    """Return the cell of a map ``(H, W)`` that was picked in a part, else the strongest one."""
    rows, columns = values.shape
    row, column = picked(key, "cell", divmod(int(values.argmax()), columns))
    return min(row, rows - 1), min(column, columns - 1)


def remember_link(key: str, link: Mapping[str, str]) -> None:
    """Keep the link to what the part shows now, for the button that opens the explorer."""
    st.session_state[_state_key(key, "link")] = dict(link)


def remembered_link(key: str) -> Mapping[str, str]:
    """Return the link that `remember_link` kept last; an empty one before."""
    link: Mapping[str, str] = st.session_state.get(_state_key(key, "link"), {})
    return link


def remember_shown(key: str, shown: Mapping[str, str], start: Mapping[str, str]) -> None:
    """Keep what the part's controls stand at, as options of the part: the text follows them.

    Args:
        key: of the part.
        shown: the options as the controls have them now.
        start: the same options as they were at first; what is as it was is not kept.
    """
    kept = {name: value for name, value in shown.items() if value != start[name]}
    st.session_state[_state_key(key, "shown")] = kept


def remembered_shown(key: str) -> Mapping[str, str]:
    """Return the options that differ from the file's by now; none before the part was drawn."""
    shown: Mapping[str, str] = st.session_state.get(_state_key(key, "shown"), {})
    return shown


def _state_key(key: str, name: str) -> str:
    return f"_picked {key} {name}"  # a key that no widget has can't be set from outside
