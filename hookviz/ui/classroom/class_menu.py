"""Show the menu by which a class is begun or joined."""

import streamlit as st

from hookviz.classroom.classes import classes
from hookviz.errors import ClassroomError
from hookviz.language.saying import say
from hookviz.ui.classroom import membership
from hookviz.ui.menu import Menu, show_menus
from hookviz.ui.state import plain

_LEAD = """<script>{{
  const way = new URL(location.href);
  way.searchParams.set("{name}", "{code}");
  location.assign(way);
}}</script>"""
"""Loads the page again by the link to a class, which the proxy takes to the class's server."""

_LONGEST = 20  # letters of a code as it is typed


def offer_class() -> None:
    """Show the menu, where there may be classes and this session is in none."""
    if not classes().are_on or {membership.FOLLOW, membership.TEACH} & set(st.query_params):
        return
    hint = say("Have other screens follow yours, or follow your teacher's")
    with st.container(key="hv-class-menu"):
        show_menus(Menu(say("Classroom"), "groups", "hv-class-open", _show_choices, hint))


def _show_choices() -> None:
    with st.form("hv-join", border=False):
        typed = st.text_input(
            say("The code of your class"),
            max_chars=_LONGEST,
            autocomplete="off",
            placeholder="K7M P3X",
            key="hv-join-code",
        )
        asked = st.form_submit_button(say("Follow my teacher"), type="primary")
    if asked:
        joined = membership.join(typed)
        if joined.token:
            st.rerun()
        if joined.elsewhere:
            st.html(
                _LEAD.format(name=membership.FOLLOW, code=joined.code), unsafe_allow_javascript=True
            )
        else:
            st.error(plain(joined.refusal), icon=":material/school:")
    st.divider()
    st.caption(
        say(
            "As a teacher: pupils' screens show what yours shows, until they let go, and you can "
            "ask them questions. Photographs of your own are not shared."
        )
    )
    if st.button(say("Begin a class"), icon=":material/co_present:", key="hv-class-begin"):
        try:
            membership.begin()
        except ClassroomError as error:
            st.error(plain(str(error)), icon=":material/error:")
            return
        st.rerun()
