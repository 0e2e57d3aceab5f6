"""Show buttons that open menus, each filled only then."""

from collections.abc import Callable
from typing import NamedTuple

import streamlit as st

from hookviz.language.saying import say
from hookviz.ui.link import settle_query

_MORE = "hv-more"
_PRESSED = "_hv-more"  # a key that no widget has can't be set from outside


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


def show_more(*menus: Menu, above: Callable[[], None] | None = None) -> None:
    """Show one button that opens all the menus, a tab for each; `above` draws over them."""
    with st.container(width="content"):
        _show_more(menus, above)


@st.fragment
def _show_more(menus: tuple[Menu, ...], above: Callable[[], None] | None) -> None:
    settle_query()
    if st.session_state.pop(_PRESSED, False):
        st.rerun()
    with st.popover(
        say("More"),
        icon=":material/more_horiz:",
        help=say("What can be done with this view"),
        width="content",
        on_change="rerun",
        key=_MORE,
    ) as popover:
        if not popover.open:
            return
        if above is not None:
            above()
        labels = [menu.label for menu in menus]
        tabs = st.tabs(labels, on_change="rerun", key="hv-more-tabs")
        for menu, tab in zip(menus, tabs, strict=True):
            if tab.open:
                with tab:
                    menu.fill()


def close_more() -> None:
    """Close that menu and run the page, from the callback of what was pressed in it."""
    st.session_state[_MORE] = False
    st.session_state[_PRESSED] = True
