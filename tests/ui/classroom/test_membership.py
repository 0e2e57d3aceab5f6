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


ENDED = (
    "membership.stop_teaching('ended'); st.query_params[membership.TEACH] = 'K7MP3X'; "
    "membership.stop_teaching(why)"
)


@pytest.mark.parametrize(
    ("step", "name", "why"),
    [
        ("membership.stop_teaching(why)", membership.TEACH, "unknown"),
        ("membership.resume_teaching('a-secret')", membership.TEACH, "unknown"),
        ("membership.leave(why)", membership.FOLLOW, "unknown"),
        (ENDED, membership.TEACH, "taught"),  # a link that comes after the end of its class
    ],
)
def test_a_page_is_told_that_its_class_is_gone_and_why(step: str, name: str, why: str) -> None:
    assert farewell(step, **{name: "K7MP3X"}) == why
    if step != ENDED:
        assert farewell(step) == "nothing"
