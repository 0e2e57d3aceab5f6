"""The list of all lessons."""

import streamlit as st

from hookviz.language.saying import say
from hookviz.lessons.catalog import lessons
from hookviz.ui.components.lesson_list import show_list
from hookviz.ui.lessons.choosing import go_to_lesson, leave


def show_lessons() -> None:
    """Draw the list, and the way back to the explorer."""
    with st.container(key="hv-lessons"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.subheader(say("Lessons"), anchor=False, width="content")
            st.button(
                say("To the explorer"),
                icon=":material/arrow_back:",
                key="hv-to-explorer",
                type="tertiary",
                on_click=leave,
            )
        st.caption(
            say(
                "Everything in them is live: they run on the model and the image at the left. What "
                "you have done stays in this browser."
            )
        )
        show_list(lessons(), go_to_lesson)
