"""Keep the session's part in a class: its teacher, one who follows, or neither.

The link says which class (``follow`` and ``class``); what it takes to be in one, a pass or the
teacher's secret, is the session's and the browser tab's.
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
"""Link parameters with the code of the class that is followed, and of the one that is taught."""

# Keys of session_state that no widget has can't be set from outside.
_TAUGHT, _JOINED, _FAREWELL = "_taught", "_joined", "_farewell"


@dataclass(frozen=True, slots=True)
class Joined:
    """Result of joining by a code.

    Attributes:
        typed: the code as the link has it.
        code: the class's, as the server knows it.
        token: the session's pass; empty where it got none.
        refusal: why not, in words.
        elsewhere: whether another server has the class.
    """

    typed: str
    code: str
    token: str = ""
    refusal: str = ""
    elsewhere: bool = False


def begin() -> None:
    """Begin a class and teach it.

    Raises:
        ClassroomError: there are too many.
    """
    begun = classes().begin(session(), page_address())
    _teach(begun.code, begun.secret_for_the_teacher())


def _teach(code: str, secret: str) -> None:
    forget_farewell()
    st.session_state[_TAUGHT] = code, secret
    update_link(**{TEACH: code, FOLLOW: None})


def taught() -> tuple[SchoolClass, str] | None:
    """Return the class that this session teaches and its secret; None if there is none any more.

    One that is over leaves the link too.
    """
    code, secret = st.session_state.get(_TAUGHT, ("", ""))
    taught_class = classes().taught(code, secret)
    if taught_class is not None:
        return taught_class, secret
    if code:
        stop_teaching("ended")
    return None


def take_up(secret: str) -> None:
    """Teach the link's class again after the page was loaded anew, with what the tab has kept."""
    code = read_code(st.query_params.get(TEACH, ""))
    if classes().taught(code, secret) is None:
        stop_teaching("unknown")
    else:
        _teach(code, secret)


def stop_teaching(why: str) -> None:
    """Forget the class that this session taught, which goes on until it is ended.

    A link that was sent before its end, and comes after it, names a class that is unknown; that
    it has ended is the better word.
    """
    is_late = why == "unknown" and farewell() == "taught"
    if not is_late and (_TAUGHT in st.session_state or TEACH in st.query_params):
        # What a teacher looks at was theirs all along.
        st.session_state[_FAREWELL] = (
            "taught" if why == "ended" else why
        )  # first: a click may end this run anywhere
    st.session_state.pop(_TAUGHT, None)
    update_link(**{TEACH: None})


def end() -> None:
    """End the class that this session teaches, for all."""
    taught_class = taught()
    if taught_class is not None:
        classes().end(taught_class[0])
        stop_teaching("ended")


def join(typed: str) -> Joined:
    """Follow the class of a code, where there is one."""
    st.session_state.pop(_JOINED, None)
    joined = _admitted(typed)
    if joined.token:
        forget_farewell()
        st.session_state[_JOINED] = joined
        update_link(**{FOLLOW: joined.code, TEACH: None})
    return joined


def joined() -> Joined | None:
    """Return the class that the link says is followed, or why not; None if it says nothing."""
    typed = st.query_params.get(FOLLOW)
    if not typed:
        return None
    known: Joined | None = st.session_state.get(_JOINED)
    if known is None or typed not in (known.typed, known.code):
        known = st.session_state[_JOINED] = _admitted(typed)
    return known


def leave(why: str) -> None:
    """Stop following."""
    if why == "left":
        forget_farewell()
    elif _JOINED in st.session_state or FOLLOW in st.query_params:
        st.session_state[_FAREWELL] = why  # first: a click may end this run anywhere
    st.session_state.pop(_JOINED, None)
    classes().leave(session())
    update_link(**{FOLLOW: None})


def farewell() -> str:
    """Return why the class that this session was in is over; empty where nothing is to be said."""
    why: str = st.session_state.get(_FAREWELL, "")
    return why


def forget_farewell() -> None:
    """Forget why the class that this session was in is over."""
    st.session_state.pop(_FAREWELL, None)


def _admitted(typed: str) -> Joined:
    try:
        followed = classes().find(typed, session(), page_address())
        return Joined(typed, followed.code, followed.admit(session()))
    except ClassroomError as error:
        elsewhere = isinstance(error, OtherServerError)
        return Joined(typed, read_code(typed), refusal=str(error), elsewhere=elsewhere)
