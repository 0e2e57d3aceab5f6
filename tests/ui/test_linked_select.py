"""A choice in the URL under its own name, as Streamlit runs a page without a browser."""

from streamlit.testing.v1 import AppTest

PAGE = """
import streamlit as st
from hookviz.ui.linked_select import linked_select

st.text(linked_select("Fruit", {"": "none", "a": "apple 7 %", "b": "pear 3 %"}, "fruit"))
st.text(linked_select("Colour", {"r": "red 1"}, "colour", placeholder="any"))
"""


def _values(page: AppTest) -> list[str]:
    assert not page.exception
    return [text.value for text in page.text]


def test_the_link_has_the_name_and_the_box_the_words() -> None:
    page = AppTest.from_string(PAGE)
    page.query_params["fruit"] = "b"
    page.query_params["colour"] = "nonsense"
    assert _values(page.run()) == ["b", "None"]
    assert page.selectbox(key="fruit").options == ["none", "apple 7 %", "pear 3 %"]
    page.selectbox(key="fruit").select("a")
    page.selectbox(key="colour").select("r").run()
    assert _values(page) == ["a", "r"]
    assert page.query_params == {"fruit": "a", "colour": "r"}


def test_what_needs_no_saying_is_not_in_the_link() -> None:
    page = AppTest.from_string(PAGE)
    page.query_params["fruit"] = "a"
    page.run()
    page.selectbox(key="fruit").select("").run()
    assert _values(page)[0] == ""
    assert not page.query_params
