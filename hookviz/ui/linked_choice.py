"""Show a choice of a few words that is in the link in English, in whatever language.

In English that is Streamlit's own ``bind="query-params"``, which writes what is shown. In another
language the link is read and written here, so that it opens the same for everybody.
"""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from hookviz.language.catalogs import ENGLISH
from hookviz.language.saying import say
from hookviz.language.speaking import current
from hookviz.ui.languages import choice_in_link, is_just_switched, kept_choices
from hookviz.ui.link import update_link

Widget = Callable[..., Any]
"""``st.selectbox`` or ``st.segmented_control``."""


def linked_choice(
    widget: Widget,
    label: str,
    options: Sequence[str],
    key: str,
    *,
    first: str | None,
    shown: Callable[[str], str] = say,
    english: dict[str, Any] | None = None,
    is_bound: bool = True,
    **looks: Any,
) -> str | None:
    """Show the options, and return the one that a person chose.

    Args:
        widget: what shows them.
        label: what it is a choice of.
        options: in English, each given to `mark` where it stands.
        key: of the widget, and of the parameter in the link.
        first: what is chosen where the link says nothing.
        shown: what an option looks like in the language.
        english: what the widget gets where the link is Streamlit's, beside `looks`.
        is_bound: whether Streamlit may write the link. Where another page goes on with the choice
            and shows it otherwise it may not: it takes out of the link what it binds no more.
        looks: what the widget gets in any language.
    """
    if current() == ENGLISH and is_bound:
        if is_just_switched():  # the widget still holds a word of the other language
            asked, english = st.query_params.get(key), None
            st.session_state[key] = asked if asked in options else first
        return _one(
            widget(label, options, key=key, bind="query-params", **(english or {}), **looks)
        )
    asked = choice_in_link(key)
    st.session_state[key] = asked if asked in options else first

    def note() -> None:
        chosen = st.session_state[key]
        update_link(**kept_choices() | {key: None if chosen == first else chosen})

    return _one(widget(label, options, key=key, format_func=shown, on_change=note, **looks))


def _one(chosen: object) -> str | None:
    return chosen if isinstance(chosen, str) else None
