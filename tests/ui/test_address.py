"""What a run says of the fragment; tests/e2e/test_history.py has the browser's part."""

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from scripts.visitor import unpacked

PAGE = """
import streamlit as st
from hookviz.ui.address import hand_over_address
from hookviz.ui.link import address, settle_query, update_link

settle_query()
st.session_state["address"] = known = address()
if st.session_state.get("draws"):
    known.drawn = known.view
st.button("channel", on_click=update_link, kwargs={"channel": "5"})
st.button("star", on_click=update_link, kwargs={"sample": "star"})
st.button("both", on_click=update_link, kwargs={"channel": "6", "sample": "flower"})
if st.button("in the run"):
    update_link(channel=None)
hand_over_address()
"""


def handed_over(page: AppTest) -> dict[str, Any] | None:
    """What the browser gets of the last run; None where there is nothing to say."""
    assert not page.exception
    if not page.get("bidi_component"):
        return None
    facts, _ = unpacked(page.get("bidi_component")[0].proto.bytes)
    return {name: facts[name] for name in ("view", "changes", "number", "isStep")}


@pytest.fixture
def page() -> AppTest:
    return AppTest.from_string(PAGE, default_timeout=60).run()


def click(page: AppTest, label: str) -> dict[str, Any] | None:
    next(button for button in page.button if button.label == label).click().run()
    return handed_over(page)


def test_a_click_is_one_step_of_the_browsers_history(page: AppTest) -> None:
    assert handed_over(page) is None
    assert click(page, "star") is None  # the query alone
    changed = {"view": None, "changes": {"channel": "5"}, "number": 1}
    assert click(page, "channel") == changed | {"isStep": True}
    page.session_state["address"].receive({"fragment": "channel=5", "number": 1})
    both = {"view": None, "changes": {"channel": "6"}, "number": 2}
    assert click(page, "both") == both | {"isStep": False}  # the query's step has it
    assert page.query_params == {"sample": "flower"}
    mended = {"view": None, "changes": {"channel": None}, "number": 3}
    assert click(page, "in the run") == mended | {"isStep": False}


def test_a_page_that_draws_by_the_view_says_by_which(page: AppTest) -> None:
    page.session_state["draws"] = True
    page.session_state["address"].receive({"fragment": "layer=conv1", "number": 0})
    drawn = {"view": {"layer": "conv1"}, "changes": {}, "number": 0, "isStep": False}
    assert handed_over(page.run()) == drawn
    page.session_state["draws"] = False
    assert handed_over(page.run()) is None
