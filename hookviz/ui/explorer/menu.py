"""A button that opens a menu, which is filled only then."""

from collections.abc import Callable

import streamlit as st


def menu(
    label: str, icon: str, key: str, fill: Callable[[], None], hint: str | None = None
) -> None:
    """The button; once it is opened `fill` draws what is in it, and nothing else runs then.

    What `fill` holds stays in memory until the page runs again, so no model should be in it.
    """
    with st.container(width="content"):  # a fragment by itself is as wide as it can be
        _show_popover(label, icon, key, fill, hint)


@st.fragment
def _show_popover(
    label: str, icon: str, key: str, fill: Callable[[], None], hint: str | None
) -> None:
    with st.popover(
        label,
        icon=f":material/{icon}:",
        help=hint,
        width="content",
        on_change="rerun",
        key=key,
    ) as popover:
        if popover.open:
            fill()
