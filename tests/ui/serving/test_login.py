from collections.abc import Iterator

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from hookviz.settings import settings
from hookviz.ui.serving import login, visitors
from hookviz.ui.serving.queue_wait import _on_session_end

SCRIPT = """
import streamlit as st
from hookviz.errors import HookVizError
from hookviz.ui.serving.login import let_in
try:
    if let_in():
        st.write("inside")
except HookVizError as error:
    st.error(str(error))
"""
CODE = "chalk & böard"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.cache_clear()
    login.wrong_codes.cache_clear()
    visitors._admitted.clear()
    yield
    settings.cache_clear()
    login.wrong_codes.cache_clear()


def inside(page: AppTest) -> bool:
    assert not page.exception
    return [element.value for element in page.markdown] == ["inside"]


def answered(code: str, page: AppTest | None = None) -> AppTest:
    page = page or AppTest.from_string(SCRIPT).run()
    page.text_input[0].set_value(code)
    page.button[0].click()
    return page.run()


def test_without_a_code_everybody_comes_in() -> None:
    assert inside(AppTest.from_string(SCRIPT).run())


def test_the_code_is_asked_once_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKVIZ_CLASS_CODE", CODE)
    page = AppTest.from_string(SCRIPT).run()
    assert not inside(page)
    page = answered("chalk", page)
    assert not inside(page)
    assert "not the code" in page.error[0].value
    assert not visitors._admitted
    page = answered(f" {CODE} ", page)
    assert inside(page)
    (name,) = visitors._admitted
    assert visitors.is_admitted(visitors._admitted[name])
    _on_session_end(name)
    assert not visitors._admitted
    assert inside(page.run())
    other = AppTest.from_string(SCRIPT)
    other.query_params["_came_in"] = "True"  # no link can carry a person in
    assert not inside(other.run())


def test_a_right_code_comes_in_whatever_others_guess_at_its_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOOKVIZ_CLASS_CODE", CODE)
    monkeypatch.setattr(login, "_WRONG_A_MINUTE", 3)
    monkeypatch.setattr(type(st.context), "ip_address", "203.0.113.1")
    page = answered("0")
    for guess in ("1", "2"):
        assert "not the code" in answered(guess, page).error[0].value
    assert "Too many" in answered(CODE, page).error[0].value
    assert not inside(page)
    assert inside(answered(CODE))  # another session


def test_a_login_that_nobody_set_up_lets_nobody_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKVIZ_LOGIN", "1")
    page = AppTest.from_string(SCRIPT).run()
    assert not inside(page)
    assert "secrets.toml" in page.error[0].value
