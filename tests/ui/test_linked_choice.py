"""A choice of words that is in the link in English, where the page speaks another language."""

from streamlit.testing.v1 import AppTest

from hookviz.language.speaking import speaking

PAGE = """
import streamlit as st
from hookviz.language.speaking import speak
from hookviz.ui.linked_choice import linked_choice

speak("zh_CN")
words = ["pretrained", "random"]
st.text(linked_choice(st.selectbox, "weights", words, "weights", first="pretrained"))
"""


def _chosen(page: AppTest) -> str:
    assert not page.exception
    text: str = page.text[0].value
    return text


def test_the_link_is_english_and_an_earlier_one_takes_the_choice_back() -> None:
    with speaking("zh_CN"):  # for what AppTest takes the place of a browser with
        page = AppTest.from_string(PAGE, default_timeout=60).run()
        assert page.selectbox(key="weights").options == ["预训练", "随机"]
        assert _chosen(page) == "pretrained"
        page.selectbox(key="weights").select("random").run()
        assert _chosen(page) == "random"
        assert page.query_params == {"weights": "random"}
        page.query_params.clear()  # as the browser's Back does
        assert _chosen(page.run()) == "pretrained"
        page.query_params["weights"] = "random"  # and its Forward
        assert _chosen(page.run()) == "random"
        page.selectbox(key="weights").select("pretrained").run()
        assert not page.query_params
