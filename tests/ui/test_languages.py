import sys
from urllib.parse import urlencode

import pytest
import streamlit as st
from starlette.requests import HTTPConnection
from streamlit.testing.v1 import AppTest

from hookviz.ui.languages import language_of, nearest


def test_whoever_reads_a_language_gets_the_one_that_is_there() -> None:
    for asked in ("zh-CN", "zh_cn", "zh", "zh-Hans-SG", "zh-TW", "zh-CN<script>"):
        assert nearest(asked, ("en", "zh_CN")) == "zh_CN"
    assert nearest("en-GB", ("en", "zh_CN")) == "en"
    assert nearest("de-DE", ("en", "zh_CN")) is nearest("", ("en", "zh_CN")) is None


PAGE = """
import streamlit as st
from hookviz.ui.languages import pick_language, speak_page_language

st.text(speak_page_language())
pick_language()
"""


@pytest.mark.parametrize(
    ("link", "browser", "spoken"),
    [
        ({"lang": "zh-CN"}, "en-GB", "zh_CN"),
        ({}, "zh-TW,zh;q=0.9,en;q=0.8", "zh_CN"),
        ({"lang": "en"}, "zh-CN", "en"),
        ({}, "tlh;q=0.5,, ;", "en"),  # which nobody will translate
        ({}, "", "en"),
    ],
)
def test_the_page_and_requests_beside_it_speak_the_links_language_or_the_browsers(
    link: dict[str, str], browser: str, spoken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = {
        "type": "http",
        "query_string": urlencode(link).encode(),
        "headers": [(b"accept-language", browser.encode())],
    }
    assert language_of(HTTPConnection(scope)) == spoken
    locale = browser.partition(",")[0].partition(";")[0] or None
    monkeypatch.setattr(type(st.context), "locale", locale)
    page = AppTest.from_string(PAGE, default_timeout=60)
    page.query_params.update(link)
    assert page.run().text[0].value == spoken


def test_nobody_waits_for_the_pattern_of_all_emojis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "streamlit.emojis", raising=False)
    page = AppTest.from_string(PAGE).run()
    assert not page.exception
    assert [each.strip() for each in page.selectbox[0].options] == ["English", "简体中文"]
    assert "streamlit.emojis" not in sys.modules
