"""The form by which a teacher asks the class."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from hookviz.classroom.question import (
    LONGEST_ANSWER,
    LONGEST_QUESTION,
    MOST,
    read_question,
)
from hookviz.classroom.school_class import SchoolClass
from hookviz.errors import ClassroomError
from hookviz.language.saying import say
from hookviz.ui.menu import Menu
from hookviz.ui.state import plain


def ask_menu(held: Callable[[], SchoolClass | None]) -> Menu:
    """A menu with the form; `held` gives the class that this session teaches."""
    fill = partial(_show_form, held)
    hint = say("A question on the screens of all who follow")
    return Menu(say("Ask"), "help", "hv-class-ask", fill, hint)


def _show_form(held: Callable[[], SchoolClass | None]) -> None:
    with st.form("hv-question", border=False):
        words = st.text_input(say("Question"), max_chars=LONGEST_QUESTION, key="hv-question-words")
        answers = st.text_area(
            say("Answers, one a line: two to six"),
            max_chars=MOST * (LONGEST_ANSWER + 1),
            height=170,
            key="hv-question-answers",
        )
        sent = st.form_submit_button(say("Ask the class"), type="primary")
    if sent:
        taught = held()
        try:
            question = read_question(words, answers.splitlines())
        except ClassroomError as error:
            st.error(plain(str(error)), icon=":material/error:")
            return
        if taught is not None:
            if not question.is_like(taught.question):  # else the answers would be lost
                taught.ask(question)
            st.success(say("Asked. The answers are counted at the bottom of your screen."))
