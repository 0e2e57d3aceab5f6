from functools import partial

import pytest
from hypothesis import given, strategies
from markdown_it import MarkdownIt
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
from streamlit.testing.v1 import AppTest, local_script_runner

from hookviz.language.speaking import speaking
from hookviz.ui.state import plain


@given(strategies.text(strategies.characters(min_codepoint=32, max_codepoint=126), max_size=60))
def test_plain_text_has_no_markup_left(text: str) -> None:
    tokens = MarkdownIt().parseInline(plain(text).strip())[0].children or []
    assert {token.type for token in tokens} <= {"text", "text_special"}
    assert "".join(token.content for token in tokens) == text.strip()


PAGE = """
import streamlit as st
from hookviz.language.speaking import speak
from hookviz.ui.link import settle_query
from hookviz.ui.state import linked_choice

settle_query()
speak("zh_CN")
words = ["pretrained", "random"]
st.text(linked_choice(st.selectbox, "weights", words, "weights", first="pretrained"))
"""


def _values(page: AppTest) -> list[str]:
    assert not page.exception
    return [text.value for text in page.text]


def test_the_link_is_english_and_an_earlier_one_takes_the_choice_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with speaking("zh_CN"):  # for what AppTest takes the place of a browser with
        page = AppTest.from_string(PAGE, default_timeout=60).run()
        assert page.selectbox(key="weights").options == ["预训练", "随机"]
        assert _values(page) == ["pretrained"]
        page.selectbox(key="weights").select("random").run()
        assert _values(page) == ["random"]
        assert page.query_params == {"weights": "random"}
        with monkeypatch.context() as steps:
            by_history = partial(RerunData, is_history_navigation=True)
            steps.setattr(local_script_runner, "RerunData", by_history)
            page.query_params.clear()  # the browser's Back
            assert _values(page.run()) == ["pretrained"]
            page.query_params["weights"] = "random"  # and its Forward
            assert _values(page.run()) == ["random"]
        page.selectbox(key="weights").select("pretrained").run()
        assert not page.query_params


OF_NAMES = """
import streamlit as st
from hookviz.ui.link import settle_query
from hookviz.ui.state import linked_choice

settle_query()
fruits = {"": "none", "a": "apple 7 %", "b": "pear 3 %"}
st.text(linked_choice(st.selectbox, "Fruit", fruits, "fruit", first=""))
st.text(linked_choice(st.selectbox, "Colour", {"r": "red 1"}, "colour", first=None, index=None))
"""


def test_the_link_has_the_name_and_the_box_the_words() -> None:
    page = AppTest.from_string(OF_NAMES)
    page.query_params["fruit"] = "b"
    page.query_params["colour"] = "nonsense"
    assert _values(page.run()) == ["b", "None"]
    assert page.selectbox(key="fruit").options == ["none", "apple 7 %", "pear 3 %"]
    page.selectbox(key="fruit").select("a")
    page.selectbox(key="colour").select("r").run()
    assert _values(page) == ["a", "r"]
    assert page.query_params == {"fruit": "a", "colour": "r"}
    page.selectbox(key="fruit").select("").run()
    assert _values(page) == ["", "r"]
    assert page.query_params == {"colour": "r"}  # what needs no saying is not in it
