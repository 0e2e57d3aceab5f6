"""Offer the link to what is on the screen."""

from functools import partial
from urllib.parse import urlencode

import streamlit as st

from hookviz.language.saying import say
from hookviz.ui.link import words
from hookviz.ui.menu import Menu
from hookviz.ui.state import Shown


def share_menu(shown: Shown) -> Menu:
    """Return a menu with the link to copy, and what that does not hold."""
    fill = partial(_show_link, is_own=shown.file is None)
    return Menu(say("Share"), "share", "share", fill, say("A link to what is on the screen"))


def _show_link(*, is_own: bool) -> None:
    if is_own:
        st.warning(
            say(
                "Your photograph is not in the link: it stays in your session. Whoever opens "
                "the link sees the same model, layer and channel with a sample image."
            ),
            icon=":material/no_photography:",
        )
    else:
        st.caption(say("Whoever opens this link sees the same."))
    base = str(st.context.url or "").partition("?")[0]
    query = urlencode(words())
    st.code(f"{base}?{query}" if query else base, None, wrap_lines=True)
