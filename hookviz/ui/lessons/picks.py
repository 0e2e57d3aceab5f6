"""Keep a learner's choices inside a live part in the link, and the link to the explorer.

So a class follows them, a reload keeps them, and Back undoes them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast
from urllib.parse import parse_qsl, urlencode

import streamlit as st

from hookviz.lessons.layers import Map
from hookviz.ui.link import settle_query, update_link
from hookviz.ui.state import Cell

MOVED = "moved"
"""Link parameter: the choices of every part, the newest last."""
_LONGEST = 1000  # letters; a longer text loses its oldest choices
_INTEGER, _CELL = re.compile(r"-?[0-9]{1,6}"), re.compile(r"([0-9]{1,6}),([0-9]{1,6})")

Value = TypeVar("Value")
Option = TypeVar("Option")


def picked(key: str, name: str, default: Value) -> Value:
    """Return a part's choice of a name: a number, a cell or a text, of the type of `default`.

    It is `default` before a choice, and for another type in the link.
    """
    text = _moves().get(f"{key} {name}", "")
    value: object = text or None
    if isinstance(default, tuple):
        match = _CELL.fullmatch(text)
        value = (int(match[1]), int(match[2])) if match else None
    elif not isinstance(default, str):
        value = int(text) if _INTEGER.fullmatch(text) else None
    return default if value is None else cast("Value", value)


def pick(key: str, name: str, value: object) -> None:
    """Write a part's choice into the link; for a callback."""
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
    **settings: Any,
) -> Option:
    """Show a choice of a part, and return the chosen option.

    Args:
        widget: a widget of Streamlit.
        label: of the widget.
        options: to choose from; the link has them as text.
        key: of the part.
        name: of the choice in the part.
        first: the option without a choice in the link.
        then: called after a choice.
        settings: further arguments of the widget.
    """
    by_text = {str(each): each for each in options}
    widget_key = f"{key} {name}"
    words = tuple(map(settings.get("format_func", str), options))
    _set_widget(widget_key, by_text.get(picked(key, name, str(first)), first), words)
    on_change = partial(_write_choice, key, name, then)
    chosen = widget(label, options, key=widget_key, on_change=on_change, **settings)
    return first if chosen is None else cast("Option", chosen)


def choose_button(
    label: str, names: Mapping[Option, str], key: str, name: str, *, first: Option, **settings: Any
) -> Option:
    """Show a choice of a part as a row of buttons with `names`; see `choose`."""
    return choose(
        st.segmented_control,
        label,
        tuple(names),
        key,
        name,
        first=first,
        format_func=names.__getitem__,
        required=True,
        **settings,
    )


def slide(
    label: str,
    numbers: range,
    key: str,
    name: str,
    *,
    first: int,
    then: Callable[[], object] = lambda: None,
) -> int:
    """Show a slider of a part, and return its number; see `choose`."""
    low, high, step = numbers[0], numbers[-1], numbers.step
    widget_key = f"{key} {name}"
    _set_widget(widget_key, min(high, max(low, picked(key, name, first))), (low, high, step))
    on_change = partial(_write_choice, key, name, then)
    return int(st.slider(label, low, high, step=step, key=widget_key, on_change=on_change))


def _write_choice(key: str, name: str, then: Callable[[], object]) -> None:
    pick(key, name, st.session_state[f"{key} {name}"])
    then()


def _set_widget(widget: str, value: object, offered: tuple[object, ...]) -> None:
    """Set a widget to the link's value, unless it has that value and the same options.

    An older run would undo a quicker change. With other options, if only in other words, the
    browser needs the value again.
    """
    state, of_offered = st.session_state, _state_key(widget, "offered")
    if widget not in state or state[widget] != value or state.get(of_offered) != offered:
        state[of_offered] = offered
        state[widget] = value


def _moves() -> dict[str, str]:
    settle_query()  # a quick click counts from the one before it
    text = st.query_params.get(MOVED, "")
    return dict(parse_qsl(text)) if len(text) <= _LONGEST else {}


def picked_channel(key: str, count: int, default: int) -> int:
    """Return a part's chosen channel, or `default` if it is not below `count`."""
    channel = picked(key, "channel", default)
    return channel if 0 <= channel < count else default


def pick_channel(key: str, channel: int, _cell: tuple[int, int] | None = None) -> None:
    """Choose a channel, for a click in a part's grid."""
    pick(key, "channel", channel)


def picked_cell(key: str, values: Map) -> Cell:
    """Return a part's chosen cell of a map ``(H, W)``, or the strongest cell."""
    strongest = divmod(int(values.argmax()), values.shape[1])
    return within(picked(key, "cell", strongest), values.shape)


def within(cell: Cell, size: tuple[int, ...]) -> Cell:
    """Return a cell, or the nearest one of a map with that many rows and columns."""
    return min(max(0, cell[0]), size[0] - 1), min(max(0, cell[1]), size[1] - 1)


def remember_link(key: str, link: Mapping[str, str]) -> None:
    """Remember the link to a part's present view, for the button to the explorer."""
    st.session_state[_state_key(key, "link")] = dict(link)


def remembered_link(key: str) -> Mapping[str, str]:
    """Return the link of the last `remember_link`; an empty one before."""
    link: Mapping[str, str] = st.session_state.get(_state_key(key, "link"), {})
    return link


def remember_options(key: str, options: Mapping[str, str], start: Mapping[str, str]) -> None:
    """Remember a part's options as its controls have changed them: the text follows them.

    Args:
        key: of the part.
        options: by the controls.
        start: the same options at first.
    """
    changed = {name: value for name, value in options.items() if value != start[name]}
    st.session_state[_state_key(key, "shown")] = changed


def remembered_options(key: str) -> Mapping[str, str]:
    """Return the options that a part's controls have changed; none before it was drawn."""
    changed: Mapping[str, str] = st.session_state.get(_state_key(key, "shown"), {})
    return changed


def _state_key(key: str, name: str) -> str:
    return f"_picked {key} {name}"  # no widget has this key, so no link can set it
