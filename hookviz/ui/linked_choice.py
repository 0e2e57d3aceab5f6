"""Show a choice of a few words that is in the link by a name of its own, whatever is shown for it.

Streamlit's ``bind="query-params"`` writes what is shown, and that changes with language and image.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from hookviz.language.saying import say
from hookviz.ui.link import update_link

_UNSET = object()
Widget = Callable[..., Any]
"""``st.selectbox`` or ``st.segmented_control``."""


def linked_choice(
    widget: Widget,
    label: str,
    options: Sequence[str] | Mapping[str, str],
    key: str,
    *,
    first: str | None,
    also: Callable[[str | None], Mapping[str, str | None]] = lambda _: {},
    **looks: Any,
) -> str | None:
    """Show the options, and return the name of the one that a person chose.

    Args:
        widget: what shows them.
        label: what it is a choice of.
        options: names that the link has, with what is shown for each; without that they are words
            in English, each given to `mark` where it stands.
        key: of the widget, and of the parameter in the link.
        first: what is chosen where the link says nothing; None for an open choice.
        also: returns what else of the link changes with a choice.
        looks: what else the widget gets.
    """
    shown = options if isinstance(options, Mapping) else {name: say(name) for name in options}
    asked = st.query_params.get(key)
    chosen_before = asked if asked in shown else first
    if st.session_state.get(key, _UNSET) != chosen_before:  # what is written is sent to the page
        st.session_state[key] = chosen_before

    def note() -> None:
        chosen: str | None = st.session_state[key]
        update_link(**{key: None if chosen == first else chosen}, **also(chosen))

    chosen = widget(
        label,
        list(shown),
        key=key,
        format_func=lambda name: shown.get(name, name),
        on_change=note,
        **looks,
    )
    return chosen if isinstance(chosen, str) else None
