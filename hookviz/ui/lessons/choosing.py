"""Find the lesson and step that the link names, and lead there, on, and back to the explorer."""

from collections.abc import Mapping
from functools import partial

import streamlit as st

from hookviz.errors import shorten
from hookviz.language.saying import say
from hookviz.lessons.lesson import Lesson, Question
from hookviz.lessons.part import did_you_mean
from hookviz.ui.lessons.catalog import lessons
from hookviz.ui.lessons.picks import MOVED
from hookviz.ui.link import settle_query, update_link
from hookviz.ui.state import SILENCED, choose, choose_sample, plain

ALL = "all"
"""What the link says instead of a lesson's name for the list of them."""
_IN, _GAVE, _LEFT = "_lesson", "_lesson-gave", "_lesson-left"  # of the session
_OF_NETWORK = {"weights", SILENCED}  # what the link to a live part may change for the lesson too


def offer_lessons() -> None:
    """Show the button that leads to the lessons, beside the page's name."""
    st.button(
        say("Learn"),
        icon=":material/school:",
        key="hv-learn",
        help=say("Lessons of a few minutes, with everything in them live."),
        on_click=partial(update_link, lesson=ALL, step=None),
        disabled=st.query_params.get("lesson") == ALL,
    )


def is_list() -> bool:
    """Return whether the list of lessons is asked for."""
    return st.query_params.get("lesson") == ALL


def asked_lesson() -> Lesson | None:
    """Return the lesson in the link; None without one. An unknown name leads to the list."""
    asked = st.query_params.get("lesson")
    if not asked or asked == ALL:
        if not asked:
            st.session_state.pop(_IN, None)
        return None
    known = {lesson.slug: lesson for lesson in lessons()}
    if asked not in known:
        message = say("There is no lesson {name!r}.", name=shorten(asked, 60))
        st.warning(plain(f"{message} {did_you_mean(asked, known)}"), icon=":material/link_off:")
        update_link(lesson=ALL, step=None)
        return None
    return known[asked]


def begin(lesson: Lesson) -> None:
    """Choose the lesson's own model and image where nobody chose, before their widgets are there.

    What an earlier lesson chose counts as chosen by nobody.
    """
    if st.session_state.get(_IN) == lesson.slug:
        return
    gave: dict[str, str] = st.session_state.setdefault(_GAVE, {})
    for name, value in lesson.defaults.items():
        if st.query_params.get(name) not in (None, gave.get(name)) or _own_image(name):
            continue
        gave[name] = value
        if name == "sample":
            choose_sample(value)
            continue
        choose(**{name: value})
    st.session_state[_IN] = lesson.slug  # last: a click may end this run anywhere


def _own_image(name: str) -> bool:
    """Return whether a sample would be in the way of a photograph of the visitor's own."""
    return name == "sample" and bool(st.query_params.get("upload"))


def step_of(lesson: Lesson) -> int:
    """Return the step in the link, from 1; the first where it names none."""
    asked = st.query_params.get("step", "")
    step = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 5 else 1
    return min(max(1, step), len(lesson.steps))


def go_to_step(step: int) -> None:
    """Go to another step of the same lesson; the first leaves none in the link."""
    update_link(step=str(step) if step > 1 else None)


def go_to_lesson(slug: str) -> None:
    """Begin the lesson of that name."""
    update_link(lesson=slug, step=None, **{MOVED: None})


def open_in_explorer(link: Mapping[str, str]) -> None:
    """Leave the lesson for the explorer, in the state that a live part shows."""
    settle_query()
    names = {"lesson", "step", MOVED, *(_OF_NETWORK & link.keys())}
    st.session_state[_LEFT] = {name: st.query_params.get(name) for name in names}
    others = {name: None if value == "pretrained" else value for name, value in link.items()}
    update_link(lesson=None, step=None, **{MOVED: None, "lens": None, **others})
    st.rerun()  # widgets that come now begin at what the link says when a run begins


def offer_way_back() -> None:
    """Show, in the explorer, the button back to the step of the lesson that led there."""
    if _LEFT not in st.session_state:
        return
    st.button(
        say("Back to the lesson"),
        icon=":material/school:",
        key="hv-to-lesson",
        on_click=_back,
        width="content",
    )


def _back() -> None:
    left: dict[str, str | None] = st.session_state.pop(_LEFT, {})
    update_link(lens=None, **left)


def question_key(lesson: Lesson, question: Question) -> str:
    """Return the key that the answer to a question has in the session."""
    return f"_answer {lesson.slug} {question.line}"


def is_answered(lesson: Lesson, question: Question) -> bool:
    """Return whether any answer was picked in this session."""
    return question_key(lesson, question) in st.session_state


def is_answered_rightly(lesson: Lesson, question: Question) -> bool:
    """Return whether the answer that was picked last is right."""
    picked = st.session_state.get(question_key(lesson, question))
    return picked is not None and question.answers[picked].right


def leave() -> None:
    """Go to the explorer."""
    update_link(lesson=None, step=None, **{MOVED: None})
