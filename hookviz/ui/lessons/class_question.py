"""A lesson's question, asked to the whole class by whoever teaches one."""

from collections.abc import Callable

import streamlit as st

from hookviz.classroom.question import read_question
from hookviz.language.saying import say
from hookviz.lessons.lesson import Question
from hookviz.ui.classroom.membership import taught


def offer_to_ask(question: Question, text: Callable[[str], str], *, key: str) -> None:
    """A button that puts the question on the screens of all who follow; none without a class.

    The bar of the class shows it at once, with the tally.

    Args:
        question: as the lesson has it.
        text: gives words of the lesson with their facts and without any markup.
        key: of the button.

    Raises:
        ClassroomError: a class can't be asked this: an answer is too long, for example.
    """
    teaching = taught()
    if teaching is None:
        return
    asked = st.button(
        say("Ask the class"),
        icon=":material/help:",
        key=key,
        help=say("A question on the screens of all who follow"),
    )
    if asked:
        answers = (text(each.words) for each in question.answers)
        teaching[0].ask(read_question(text(question.words), answers))
