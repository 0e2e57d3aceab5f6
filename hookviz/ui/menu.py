"""Show buttons that open menus, which are filled when they open, and files to download."""

from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

import streamlit as st

from hookviz.language.saying import say
from hookviz.ui.link import settle_query

_MORE = "hv-more"
_MORE_PRESSED = "_hv-more"  # no widget has this key, so no link can set it


class Menu(NamedTuple):
    """A button that opens a menu.

    Attributes:
        label: on the button.
        icon: before the label: a name of Material Symbols.
        key: of the widget.
        fill: draws the menu's content; it stays in memory until the page runs again, so it must
            not hold a model.
        hint: shown under the pointer.
    """

    label: str
    icon: str
    key: str
    fill: Callable[[], None]
    hint: str | None = None


def show_menus(*menus: Menu) -> None:
    """Show the buttons side by side; opening one runs nothing else of the page."""
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
    """Show one button that opens all menus, a tab for each, below what `above` draws."""
    with st.container(width="content"):
        _show_more(menus, above)


@st.fragment
def _show_more(menus: tuple[Menu, ...], above: Callable[[], None] | None) -> None:
    settle_query()
    if st.session_state.pop(_MORE_PRESSED, False):
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
        label = escape(say("Slides"))
        st.html(f'<button class="hv-slides" data-hv-opens="slides">{label} (L)</button>')
        labels = [menu.label for menu in menus]
        tabs = st.tabs(labels, on_change="rerun", key="hv-more-tabs")
        for menu, tab in zip(menus, tabs, strict=True):
            if tab.open:
                with tab:
                    menu.fill()


def close_more() -> None:
    """Close the menu of `show_more` and run the page, from the callback of a button in it."""
    st.session_state[_MORE] = False
    st.session_state[_MORE_PRESSED] = True


class File(NamedTuple):
    """A file to download: the button's label, the function that makes it, its name and type."""

    label: str
    make: Callable[[], bytes | str]
    name: str
    mime: str


def offer_files(files: Sequence[File]) -> None:
    """Show a button for each file, which is made at the click."""
    for file in files:
        st.download_button(
            file.label,
            file.make,
            file.name,
            file.mime,
            key=file.label,
            on_click="ignore",
            width="stretch",
        )
