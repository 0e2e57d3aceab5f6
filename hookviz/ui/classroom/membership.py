"""Keep the session's role in a class: teacher, follower or neither.

The link names the class (``follow`` and ``class``); the follower's pass and the teacher's secret
stay in the session and the browser's tab.
"""

from dataclasses import dataclass

import streamlit as st

from hookviz.classroom.classes import OtherServerError, classes
from hookviz.classroom.codes import read_code
from hookviz.classroom.school_class import SchoolClass
from hookviz.errors import ClassroomError
from hookviz.ui.link import update_link
from hookviz.ui.serving.queue_wait import session
from hookviz.ui.serving.visitors import page_address

FOLLOW, TEACH = "follow", "class"
"""Link parameters with the code of the followed class, and of the taught one."""

# No widget has these keys, so no link can set them.
_TAUGHT, _JOINED, _FAREWELL = "_taught", "_joined", "_farewell"


@dataclass(frozen=True, slots=True)
class Joined:
    """Result of joining by a code.

    Attributes:
        typed: the code in the link.
        code: the class's code on the server.
        token: the session's pass; empty without one.
        refusal: why it got none.
        is_on_other_server: whether another server has the class.
    """

    typed: str
    code: str
    token: str = ""
    refusal: str = ""
    is_on_other_server: bool = False


def begin() -> None:
    """Start a class and teach it.

    Raises:
        ClassroomError: there are too many.
    """
    school_class = classes().begin(session(), page_address())
    _teach(school_class.code, school_class.secret_for_the_teacher())


def _teach(code: str, secret: str) -> None:
    forget_farewell()
    st.session_state[_TAUGHT] = code, secret
    update_link(**{TEACH: code, FOLLOW: None})


def taught() -> tuple[SchoolClass, str] | None:
    """Return the class that this session teaches and its secret; None without one.

    A class that has ended is removed from the link.
    """
    code, secret = st.session_state.get(_TAUGHT, ("", ""))
    taught_class = classes().taught(code, secret)
    if taught_class is not None:
        return taught_class, secret
    if code:
        stop_teaching("ended")
    return None


def resume_teaching(secret: str) -> None:
    """Teach the link's class again after a reload, with the secret that the tab has stored."""
    code = read_code(st.query_params.get(TEACH, ""))
    if classes().taught(code, secret) is None:
        stop_teaching("unknown")
    else:
        _teach(code, secret)


def stop_teaching(why: str) -> None:
    """Stop teaching a class, which goes on until it is ended.

    After the end of a class a late link names an unknown one: "ended" stays the reason.
    """
    is_late = why == "unknown" and farewell() == "taught"
    if not is_late and (_TAUGHT in st.session_state or TEACH in st.query_params):
        # first: a click may end this run anywhere
        st.session_state[_FAREWELL] = "taught" if why == "ended" else why
    st.session_state.pop(_TAUGHT, None)
    update_link(**{TEACH: None})


def end() -> None:
    """End the class that this session teaches, for all."""
    taught_class = taught()
    if taught_class is not None:
        classes().end(taught_class[0])
        stop_teaching("ended")


def join(typed: str) -> Joined:
    """Follow the class of a code, if it exists."""
    st.session_state.pop(_JOINED, None)
    joined = _admitted(typed)
    if joined.token:
        forget_farewell()
        st.session_state[_JOINED] = joined
        update_link(**{FOLLOW: joined.code, TEACH: None})
    return joined


def joined() -> Joined | None:
    """Return the result of joining the class in the link; None without one."""
    typed = st.query_params.get(FOLLOW)
    if not typed:
        return None
    result: Joined | None = st.session_state.get(_JOINED)
    if result is None or typed not in (result.typed, result.code):
        result = st.session_state[_JOINED] = _admitted(typed)
    return result


def leave(why: str) -> None:
    """Stop following, for a reason."""
    if why == "left":
        forget_farewell()
    elif _JOINED in st.session_state or FOLLOW in st.query_params:
        st.session_state[_FAREWELL] = why  # first: a click may end this run anywhere
    st.session_state.pop(_JOINED, None)
    classes().leave(session())
    update_link(**{FOLLOW: None})


def farewell() -> str:
    """Return why this session's class is over; empty if the person knows."""
    why: str = st.session_state.get(_FAREWELL, "")
    return why


def forget_farewell() -> None:
    """Delete the reason that `farewell` returns."""
    st.session_state.pop(_FAREWELL, None)


def _admitted(typed: str) -> Joined:
    try:
        followed = classes().find(typed, session(), page_address())
        return Joined(typed, followed.code, followed.admit(session()))
    except ClassroomError as error:
        is_on_other_server = isinstance(error, OtherServerError)
        return Joined(
            typed, read_code(typed), refusal=str(error), is_on_other_server=is_on_other_server
        )
