"""Find the lesson and step in the link, and change them."""

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
"""The link's word for the list of lessons."""
_PRESENT, _DEFAULTS, _LEFT = "_lesson", "_lesson-gave", "_lesson-left"  # of the session
_OF_NETWORK = {"model", "weights", SILENCED}  # restored on the way back to a lesson


def offer_lessons() -> None:
    """Show the button to the lessons."""
    st.button(
        say("Learn"),
        icon=":material/school:",
        key="hv-learn",
        help=say("Lessons of a few minutes, with everything in them live."),
        on_click=partial(update_link, lesson=ALL, step=None),
        disabled=st.query_params.get("lesson") == ALL,
    )


def is_list() -> bool:
    """Return whether the link names the list of lessons."""
    return st.query_params.get("lesson") == ALL


def lesson_in_link() -> Lesson | None:
    """Return the lesson in the link, if any; warn of an unknown name and go to the list."""
    slug = st.query_params.get("lesson")
    if not slug:
        st.session_state.pop(_PRESENT, None)
    if not slug or slug == ALL:
        return None
    known = {lesson.slug: lesson for lesson in lessons()}
    if slug not in known:
        message = say("There is no lesson {name!r}.", name=shorten(slug, 60))
        st.warning(plain(f"{message} {did_you_mean(slug, known)}"), icon=":material/link_off:")
        update_link(lesson=ALL, step=None)
        return None
    return known[slug]


def begin(lesson: Lesson) -> None:
    """Choose the lesson's model and image unless the visitor has chosen; before their widgets.

    Choices by an earlier lesson are replaced.
    """
    if st.session_state.get(_PRESENT) == lesson.slug:
        return
    by_lessons: dict[str, str] = st.session_state.setdefault(_DEFAULTS, {})
    has_upload = bool(st.query_params.get("upload"))
    for name, value in lesson.defaults.items():
        is_chosen = st.query_params.get(name) not in (None, by_lessons.get(name))
        if is_chosen or (name == "sample" and has_upload):
            continue
        by_lessons[name] = value
        if name == "sample":
            choose_sample(value)
        else:
            choose(**{name: value})
    st.session_state[_PRESENT] = lesson.slug  # last: a click may end this run anywhere


def step_of(lesson: Lesson) -> int:
    """Return the step in the link, from 1; the first without one."""
    text = st.query_params.get("step", "")
    step = int(text) if text.isascii() and text.isdigit() and len(text) < 5 else 1
    return min(max(1, step), len(lesson.steps))


def go_to_step(step: int) -> None:
    """Go to another step of the same lesson; the link leaves out the first."""
    update_link(step=str(step) if step > 1 else None)


def go_to_lesson(slug: str) -> None:
    """Go to the first step of a lesson, or to the list."""
    update_link(lesson=slug, step=None, **{MOVED: None})


def open_in_explorer(link: Mapping[str, str]) -> None:
    """Leave the lesson for the explorer, with the view of a live part."""
    settle_query()
    names = {"lesson", "step", MOVED, *(_OF_NETWORK & link.keys())}
    st.session_state[_LEFT] = {name: st.query_params.get(name) for name in names}
    others = {name: None if value == "pretrained" else value for name, value in link.items()}
    update_link(lesson=None, step=None, **{MOVED: None, "lens": None, **others})
    st.rerun()  # new widgets start with the link at the beginning of a run


def offer_lesson_button() -> None:
    """Show, in the explorer, the button back to the lesson's step."""
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
    """Return the session's key for the answer to a question."""
    return f"_answer {lesson.slug} {question.line}"


def is_answered(lesson: Lesson, question: Question) -> bool:
    """Return whether an answer was picked in this session."""
    return question_key(lesson, question) in st.session_state


def is_answered_rightly(lesson: Lesson, question: Question) -> bool:
    """Return whether the last picked answer is right."""
    picked = st.session_state.get(question_key(lesson, question))
    return picked is not None and question.answers[picked].right


def leave() -> None:
    """Go to the explorer."""
    update_link(lesson=None, step=None, **{MOVED: None})
