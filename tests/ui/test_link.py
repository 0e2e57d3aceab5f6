from functools import partial

import pytest
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
from streamlit.testing.v1 import AppTest, local_script_runner

from hookviz.ui.link import HELD
from tests.ui.link_parameters import bound

PAGE = """
import streamlit as st
from hookviz.ui.link import link_watch, restore_reverted, update_link

st.session_state["seen"] = link_watch()
restore_reverted()
st.button("five", on_click=update_link, kwargs={"channel": "5", "layer": "conv1"})
st.button("none", on_click=update_link, kwargs={"channel": None})
st.button("star", on_click=update_link, kwargs={"sample": "star"})
st.button("three steps", on_click=update_link, kwargs={"dream-steps": "3"})
"""


@pytest.fixture
def page() -> AppTest:
    opened = AppTest.from_string(PAGE, default_timeout=60)
    opened.query_params["channel"] = "3"
    return opened.run()


def click(page: AppTest, label: str, **link: str) -> dict[str, str]:
    """The link after a click that set out with the choices of another one."""
    page.query_params.clear()
    page.query_params.update(link)
    next(button for button in page.button if button.label == label).click().run()
    assert not page.exception
    return dict(page.query_params)


def test_a_click_with_the_link_before_undoes_nothing(page: AppTest) -> None:
    assert click(page, "five", channel="3") == {"channel": "5", "layer": "conv1"}
    whole = {"channel": "5", "layer": "conv1", "sample": "star"}
    assert click(page, "star", channel="3") == whole
    assert click(page, "star", channel="5", layer="conv1") == whole
    assert click(page, "none", channel="3") == {"layer": "conv1", "sample": "star"}
    assert click(page, "star", **whole) == {"layer": "conv1", "sample": "star"}
    strange = {"channel": "9", "layer": "conv2", "model": "ShapesNet"}  # which was never there
    assert click(page, "star", **strange) == {**strange, "sample": "star"}


def test_what_a_widget_may_bind_is_not_held(page: AppTest) -> None:
    assert not HELD & bound()
    assert click(page, "three steps", channel="3") == {"channel": "3", "dream-steps": "3"}
    assert click(page, "star", channel="3") == {"channel": "3", "sample": "star"}


def test_an_earlier_value_is_meant_after_a_while_and_where_the_explorer_shows_it(
    page: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = {"channel": "3", "layer": "conv2"}
    monkeypatch.setattr("hookviz.ui.link._ON_ITS_WAY", 0.0)
    click(page, "five", channel="3")
    page.session_state["seen"]("?channel=3&layer=conv2")
    assert click(page, "star", **link) == {**link, "sample": "star"}
    click(page, "five", **link)
    monkeypatch.setattr("hookviz.ui.link._LATEST", 0.0)
    assert click(page, "star", **link) == {**link, "sample": "star"}


NAMED = """
import streamlit as st
from hookviz.ui.link import update_link

def note():
    update_link(named=st.session_state["word"])

if "named" not in st.query_params:
    st.text_input("Word", "5", key="word", on_change=note)
"""


def test_back_writes_nothing_of_a_widget_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its value comes along from the browser, and is new to a session that has dropped it."""
    page = AppTest.from_string(NAMED, default_timeout=60).run()
    back = partial(RerunData, is_history_navigation=True)
    monkeypatch.setattr(local_script_runner, "RerunData", back)
    page.query_params["named"] = "0, 3"
    page.text_input(key="word").set_value("12").run()
    assert dict(page.query_params) == {"named": "0, 3"}
