"""Show a select box whose choice is in the URL under a name of its own, whatever the box shows.

Streamlit's ``bind="query-params"`` writes what is shown, and that may change with the image.
"""

from collections.abc import Callable, Mapping

import streamlit as st

from hookviz.ui.link import update_link


def linked_select(
    label: str,
    options: Mapping[str, str],
    key: str,
    *,
    placeholder: str | None = None,
    hint: str | None = None,
    on_pick: Callable[[str | None], None] | None = None,
) -> str | None:
    """Show `options` in words, and return the name that a person chose of them.

    Args:
        label: what stands above the box.
        options: what is shown for each name; names are what the URL has.
        key: of the widget, and of the parameter in the URL.
        placeholder: what an open choice stands for; without one the first option is chosen.
        hint: a line about it.
        on_pick: gets the name for the URL, None for none, where more is written than that name.
    """
    first = None if placeholder else next(iter(options))
    asked = st.query_params.get(key)
    st.session_state[key] = asked if asked in options else first

    def note() -> None:
        chosen: str | None = st.session_state[key]
        wanted = None if chosen == first else chosen
        if on_pick:
            on_pick(wanted)
        else:
            update_link(**{key: wanted})

    return st.selectbox(
        label,
        list(options),
        index=None if placeholder else 0,
        placeholder=placeholder,
        format_func=lambda name: options.get(name, name),
        key=key,
        help=hint,
        on_change=note,
    )
