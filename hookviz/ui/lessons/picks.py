"""Keep in the link what a learner moves and picks inside a live part, and the link to it.

So a class follows it, a page that is loaded again has it, and Back takes it back.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast
from urllib.parse import parse_qsl, urlencode

import streamlit as st

from hookviz.lessons.layers import Map
from hookviz.ui.link import settle_query, update_link
from hookviz.ui.state import Cell

MOVED = "moved"
"""The parameter of the link: of each part what was moved, the newest last."""
_LONGEST = 1000  # letters, beyond which the oldest is left out
_INTEGER, _CELL = re.compile(r"-?[0-9]{1,6}"), re.compile(r"([0-9]{1,6}),([0-9]{1,6})")

Value = TypeVar("Value")
Option = TypeVar("Option")


def picked(key: str, name: str, default: Value) -> Value:
    """Return what was picked of that name in a part, a number, a cell or text as `default` is.

    It is `default` before anything was picked, and where a link has something else.
    """
    text = _moves().get(f"{key} {name}", "")
    value: object = text or None
    if isinstance(default, tuple):
        found = _CELL.fullmatch(text)
        value = (int(found[1]), int(found[2])) if found else None
    elif not isinstance(default, str):
        value = int(text) if _INTEGER.fullmatch(text) else None
    return default if value is None else cast("Value", value)


def pick(key: str, name: str, value: object) -> None:
    """Keep a pick: for a callback, before the part is drawn again."""
    moves = _moves()
    moves.pop(f"{key} {name}", None)
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    if text:
        moves[f"{key} {name}"] = text
    while len(urlencode(moves)) > _LONGEST:
        del moves[next(iter(moves))]
    update_link(**{MOVED: urlencode(moves) or None})


def choose(
    widget: Callable[..., Any],
    label: str,
    options: Sequence[Option],
    key: str,
    name: str,
    *,
    first: Option,
    then: Callable[[], object] = lambda: None,
    **looks: Any,
) -> Option:
    """Show a choice of a part, and return what is chosen: `first` where the link says nothing.

    Args:
        widget: what shows the options.
        label: what it is a choice of.
        options: what there is, which the link has as text.
        key: of the part.
        name: of the choice in it.
        first: what is chosen at first.
        then: is called when a person has chosen.
        looks: what else the widget gets.
    """
    shown = {str(each): each for each in options}
    of_widget = f"{key} {name}"
    words = tuple(map(looks.get("format_func", str), options))
    _put(of_widget, shown.get(picked(key, name, str(first)), first), words)

    def note() -> None:
        pick(key, name, st.session_state[of_widget])
        then()

    chosen = widget(label, options, key=of_widget, on_change=note, **looks)
    return first if chosen is None else cast("Option", chosen)


def slide(
    label: str,
    low: int,
    high: int,
    key: str,
    name: str,
    *,
    first: int,
    step: int = 1,
    then: Callable[[], object] = lambda: None,
) -> int:
    """Show a slider of a part from `low` to `high`, and return where it is; see `choose`."""
    of_widget = f"{key} {name}"
    _put(of_widget, min(high, max(low, picked(key, name, first))), (low, high, step))

    def note() -> None:
        pick(key, name, st.session_state[of_widget])
        then()

    return int(st.slider(label, low, high, step=step, key=of_widget, on_change=note))


def _put(widget: str, value: object, offered: tuple[object, ...]) -> None:
    """Put a widget where the link has it, unless it is there already.

    A run that answers an older move would take it back from where a quick hand has moved it since.
    Where it offers something else, if only in other words, the browser has to be told again.
    """
    state, of_offered = st.session_state, _state_key(widget, "offered")
    if widget not in state or state[widget] != value or state.get(of_offered) != offered:
        state[of_offered] = offered
        state[widget] = value


def _moves() -> dict[str, str]:
    settle_query()  # what a quick click does counts from what the one before it has written
    text = st.query_params.get(MOVED, "")
    return dict(parse_qsl(text)) if len(text) <= _LONGEST else {}


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
