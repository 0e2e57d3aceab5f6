"""Show the code of a class, large, with a link and a QR code that lead to it."""

from functools import partial
from html import escape

import streamlit as st

from hookviz.classroom.codes import shown_code
from hookviz.language.saying import say
from hookviz.ui.classroom import membership
from hookviz.ui.menu import Menu
from hookviz.ui.qr_code import qr_code


def link_to(code: str) -> str:
    """Return the link by which a pupil follows."""
    base = str(st.context.url or "").partition("?")[0]
    return f"{base}?{membership.FOLLOW}={code}"


def link_of_taught() -> str:
    """Return the link to the class that this session teaches; empty where it teaches none."""
    taught = membership.taught()
    return link_to(taught[0].code) if taught is not None else ""


def code_menu(code: str) -> Menu:
    """Build a menu with all that a pupil needs, and the class's end."""
    fill = partial(_show_code, code)
    # No hint: it would stand over the code while the pointer rests on the button.
    return Menu(say("Code"), "qr_code", "hv-class-code", fill)


def _show_code(code: str) -> None:
    link = link_to(code)
    alt = escape(say("A QR code of the link to this class"), quote=True)
    st.html(
        f'<p class="hv-class-code">{shown_code(code)}</p>'
        f'<p class="hv-qr"><img src="{qr_code(link)}" alt="{alt}"></p>'
    )
    st.code(link, None, wrap_lines=True)
    st.caption(
        say(
            "Pupils open this link, or type the code in the menu Classroom. It is good for four "
            "hours, and nothing of the class is kept when it ends."
        )
    )
    if st.button(say("End the class"), icon=":material/stop_circle:", key="hv-class-end"):
        membership.end()
        st.rerun()
