"""Show buttons that open menus, each filled only then."""

from collections.abc import Callable
from typing import NamedTuple

import streamlit as st

from hookviz.ui.link import settle_query


class Menu(NamedTuple):
    """A button, and what it opens.

    What `fill` holds stays in memory until the page runs again, so no model should be in it.

    Attributes:
        label: on the button.
        icon: before the label: a name of Material Symbols.
        key: of the widget.
        fill: draws what is in the menu.
        hint: a line about it.
    """

    label: str
    icon: str
    key: str
    fill: Callable[[], None]
    hint: str | None = None


def show_menus(*menus: Menu) -> None:
    """Show the buttons side by side; where one is opened nothing else of the page runs."""
    with st.container(width="content"):  # a fragment by itself is as wide as it can be
        _show(menus)


@st.fragment
def _show(menus: tuple[Menu, ...]) -> None:
    settle_query()
    with st.container(horizontal=True, width="content"):
        for menu in menus:
            with st.popover(
                menu.label,
                icon=f":material/{menu.icon}:",
                help=menu.hint,
                width="content",
                on_change="rerun",
                key=menu.key,
            ) as popover:
                if popover.open:
                    menu.fill()
