"""What a page is told of a class that its session is in no more, as Streamlit runs it."""

from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from hookviz.classroom.classes import classes
from hookviz.ui.classroom import membership

SCRIPT = """
import streamlit as st
from hookviz.ui.classroom import membership
why = st.text_input("why")
if why:
    {step}
st.write(membership.farewell() or "nothing")
"""


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    classes.cache_clear()
    yield
    classes.cache_clear()


def farewell(step: str, **link: str) -> str:
    """What a session that knows of no class says after a step, on a page with this link."""
    page = AppTest.from_string(SCRIPT.format(step=step))
    for name, value in link.items():
        page.query_params[name] = value
    page.run()
    page.text_input[0].set_value("unknown")
    page.run()
    assert not page.exception
    assert membership.TEACH not in page.query_params
    assert membership.FOLLOW not in page.query_params
    return str(page.markdown[0].value)


@pytest.mark.parametrize(
    ("step", "name"),
    [
        ("membership.stop_teaching(why)", membership.TEACH),
        ("membership.take_up('a-secret')", membership.TEACH),
        ("membership.leave(why)", membership.FOLLOW),
    ],
)
def test_a_page_of_a_server_that_was_started_again_is_told_that_its_class_is_gone(
    step: str, name: str
) -> None:
    assert farewell(step, **{name: "K7MP3X"}) == "unknown"
    assert farewell(step) == "nothing"


def test_a_link_that_comes_after_the_end_of_its_class_does_not_say_that_it_was_unknown() -> None:
    step = (
        "membership.stop_teaching('ended'); st.query_params[membership.TEACH] = 'K7MP3X'; "
        "membership.stop_teaching(why)"
    )
    assert farewell(step, **{membership.TEACH: "K7MP3X"}) == "taught"
