"""The link in two parts: the query is Streamlit's, and the explorer's view is the fragment."""

from functools import partial

import pytest
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
from streamlit.testing.v1 import AppTest, local_script_runner

from hookviz.ui import link
from hookviz.ui.link import _own_words, address_for_others, view_words
from hookviz.ui.streamlit_internals import set_option
from tests.ui.link_parameters import bound

PAGE = """
import streamlit as st
from hookviz.ui.link import address, settle_query, update_link, words

settle_query()
st.button("five", on_click=update_link, kwargs={"channel": "5", "layer": "conv1"})
st.button("none", on_click=update_link, kwargs={"channel": None})
st.button("next", on_click=update_link, kwargs={"step": "2"})
st.button("third", on_click=update_link, kwargs={"step": "3"})
st.button("star", on_click=update_link, kwargs={"sample": "star", "channel": None})
st.button("three steps", on_click=update_link, kwargs={"dream-steps": "3"})
st.session_state["words"] = words()
st.session_state["address"] = address()
"""


@pytest.fixture
def page() -> AppTest:
    opened = AppTest.from_string(PAGE, default_timeout=60)
    opened.query_params["channel"] = "3"
    return opened.run()


def click(page: AppTest, label: str, **query: str) -> dict[str, str]:
    """The link after a click that set out with another query."""
    page.query_params.clear()
    page.query_params.update(query)
    next(button for button in page.button if button.label == label).click().run()
    assert not page.exception
    words: dict[str, str] = page.session_state["words"]
    return words


def test_a_click_with_the_query_before_undoes_nothing(page: AppTest) -> None:
    assert click(page, "next", lens="all") == {"channel": "3", "lens": "all", "step": "2"}
    assert click(page, "third", lens="all")["step"] == "3"
    assert click(page, "none", lens="all") == {"lens": "all", "step": "3"}
    assert click(page, "none", lens="all", step="2")["step"] == "3"
    assert click(page, "none", step="7") == {"step": "7"}  # which was never there


def test_the_view_is_the_fragments_and_leaves_the_query(page: AppTest) -> None:
    assert page.session_state["words"] == {"channel": "3"}  # as links were before
    view = {"channel": "5", "layer": "conv1"}
    assert click(page, "five", channel="3") == view
    assert page.query_params == {"channel": "3"}
    assert click(page, "star", channel="3") == {"layer": "conv1", "sample": "star"}
    assert page.query_params == {"sample": "star"}
    address = page.session_state["address"]
    assert (address.number, address.changes) == (2, {"channel": None, "layer": "conv1"})


def test_what_the_browser_says_counts_beside_what_it_has_not_got_yet(page: AppTest) -> None:
    click(page, "five")
    address = page.session_state["address"]
    address.receive({"fragment": "channel=9&scale=shared&weights=random&bad", "number": 0})
    assert address.view == {"channel": "5", "layer": "conv1", "scale": "shared"}
    address.receive({"fragment": "channel=9&layer=conv2&ablate-channels=", "number": 1})
    view = {"channel": "9", "layer": "conv2", "ablate-channels": ""}
    assert address.view == view
    for nonsense in ("channel=1", None, {"fragment": 1, "number": 1}, {"fragment": "channel=1"}):
        address.receive(nonsense)
    assert page.run().session_state["words"] == view


def test_what_a_widget_may_bind_is_streamlits(page: AppTest) -> None:
    assert not (_own_words() | view_words()) & bound()
    assert click(page, "three steps") == {"channel": "3", "dream-steps": "3"}
    assert click(page, "none") == {}


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


def test_back_is_meant(page: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    assert click(page, "next")["step"] == "2"
    monkeypatch.setattr(
        local_script_runner, "RerunData", partial(RerunData, is_history_navigation=True)
    )
    page.query_params.clear()
    assert "step" not in page.run().session_state["words"]
    monkeypatch.undo()
    assert "step" not in click(page, "none")


def test_other_devices_get_this_machines_address_in_its_network_where_it_listens_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link, "_own_address", lambda: "192.168.1.5")
    public = "https://cnn.example.org/app/"
    assert address_for_others(public) == public
    for host in ("localhost", "127.0.0.1", "[::1]"):
        assert address_for_others(f"http://{host}:8501/app/") == "http://192.168.1.5:8501/app/"
    monkeypatch.setattr(link, "_own_address", lambda: None)  # no network
    assert address_for_others("http://localhost:8501") is None
    monkeypatch.undo()
    set_option("server.address", "localhost")
    try:
        assert address_for_others("http://localhost:8501") is None
    finally:
        set_option("server.address", None)
