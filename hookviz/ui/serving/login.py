"""Let in those who log in, those who know the class code, or everybody."""

import hmac
from functools import cache

import streamlit as st
from streamlit.errors import StreamlitAuthError

from hookviz.errors import SettingError
from hookviz.language.saying import say
from hookviz.serving import logs
from hookviz.serving.rate_limiter import GuessLimiter
from hookviz.settings import settings
from hookviz.ui.serving import visitors
from hookviz.ui.serving.queue_wait import session
from hookviz.ui.serving.visitors import page_address
from hookviz.ui.streamlit_internals import session_id

_WRONG_A_MINUTE = 60  # of an address: a class mistypes less, and a machine guesses slowly
_LONGEST_CODE = 200


def let_in() -> bool:
    """Return whether the page may go on; if not, what to do for it is on the screen.

    Raises:
        SettingError: a login is asked for, and `secrets.toml` does not say where.
    """
    comes_in = (not settings().login or _logged_in()) and (
        not settings().class_code or _knows_the_code(settings().class_code)
    )
    if comes_in:
        visitors.admit(session(), session_id() or "")
    return comes_in


def _logged_in() -> bool:
    if "is_logged_in" not in st.user:
        raise SettingError(
            say(
                "HOOKVIZ_LOGIN=1 asks everybody to log in, and there is no [auth] in "
                ".streamlit/secrets.toml that says where. docs/hosting.md shows one."
            )
        )
    if st.user.is_logged_in:
        with st.sidebar:
            st.button(say("Log out"), on_click=st.logout, icon=":material/logout:")
        return True
    st.header("HookViz", anchor=False)
    if st.button(say("Log in"), type="primary", icon=":material/login:"):
        try:
            st.login()
        except StreamlitAuthError as error:
            raise SettingError(say("The login is not set up: {error}", error=error)) from error
    return False


def _knows_the_code(code: str) -> bool:
    # A key of session_state that no widget has can't be set from outside.
    if st.session_state.get("_came_in"):
        return True
    with st.form("class-code", border=False):
        st.header("HookViz", anchor=False)
        typed = st.text_input(
            say("Class code"), type="password", max_chars=_LONGEST_CODE, autocomplete="off"
        )
        submitted = st.form_submit_button(say("Come in"), type="primary")
    if not submitted:
        return False
    who = session(), page_address()
    if wrong_codes().is_exceeded(*who):
        st.error(say("Too many wrong codes were given here. Try again in a minute."))
    elif hmac.compare_digest(typed.strip().encode(), code.encode()):
        st.session_state["_came_in"] = True
        st.rerun()
    else:
        wrong_codes().count(*who)
        logs.event("wrong class code")
        st.error(say("This is not the code. Your teacher has it."))
    return False


@cache
def wrong_codes() -> GuessLimiter:
    """Count the wrong codes of this process, which allows its share of what all allow together."""
    return GuessLimiter(of_address=max(1, _WRONG_A_MINUTE // settings().processes))
