import sys

import pytest
import streamlit as st
from starlette.requests import HTTPConnection
from streamlit.testing.v1 import AppTest

from hookviz.ui.languages import language_of, nearest


@pytest.mark.parametrize(
    ("asked", "spoken"),
    [
        ("zh-CN", "zh_CN"),
        ("zh_cn", "zh_CN"),
        ("zh", "zh_CN"),
        ("zh-Hans-SG", "zh_CN"),
        ("zh-TW", "zh_CN"),
        ("en-GB", "en"),
        ("de-DE", None),
        ("", None),
        ("zh-CN<script>", "zh_CN"),
    ],
)
def test_whoever_reads_a_language_gets_the_one_that_is_there(
    asked: str, spoken: str | None
) -> None:
    assert nearest(asked, ("en", "zh_CN")) == spoken


@pytest.mark.parametrize(
    ("link", "browser", "spoken"),
    [
        ("lang=zh-CN", "en-GB", "zh_CN"),
        ("", "zh-TW,zh;q=0.9,en;q=0.8", "zh_CN"),
        ("lang=en", "zh-CN", "en"),
        ("", "xx;q=0.5,, ;", "en"),
        ("", "", "en"),
    ],
)
def test_a_request_beside_the_page_is_answered_in_the_links_language_or_the_browsers(
    link: str, browser: str, spoken: str
) -> None:
    scope = {
        "type": "http",
        "query_string": link.encode(),
        "headers": [(b"accept-language", browser.encode())],
    }
    assert language_of(HTTPConnection(scope)) == spoken


PAGE = """
import streamlit as st
from hookviz.ui.languages import speak_as_asked

st.text(speak_as_asked())
"""


@pytest.mark.parametrize(
    ("link", "browser", "spoken"),
    [
        ({}, "zh-TW", "zh_CN"),
        ({"lang": "zh-CN"}, "en-GB", "zh_CN"),
        ({"lang": "en"}, "zh-CN", "en"),
        ({}, "tlh", "en"),  # which nobody will translate
        ({}, None, "en"),
    ],
)
def test_the_page_speaks_the_links_language_or_the_browsers(
    link: dict[str, str], browser: str | None, spoken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(st.context), "locale", browser)
    page = AppTest.from_string(PAGE, default_timeout=60)
    for name, value in link.items():
        page.query_params[name] = value
    assert page.run().text[0].value == spoken


SWITCH = """
from hookviz.ui.languages import pick_language, speak_as_asked

speak_as_asked()
pick_language()
"""


def test_nobody_waits_for_the_pattern_of_all_emojis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "streamlit.emojis", raising=False)
    page = AppTest.from_string(SWITCH).run()
    assert not page.exception
    assert [each.content.strip() for each in page.button_group[0].proto.options] == [
        "English",
        "简体中文",
    ]
    assert "streamlit.emojis" not in sys.modules
