import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from hookviz.serving.short_links import short_links
from hookviz.settings import read_settings
from hookviz.ui.serving import go_route, visitors


@pytest.fixture
def client() -> TestClient:
    app = Starlette(routes=[go_route.route()])
    return TestClient(app, follow_redirects=False)


def test_a_code_leads_to_the_page_and_its_view(client: TestClient) -> None:
    code = short_links().code_for("model=ShapesNet&channel=3", "ann")
    for typed in (code, code.upper()):
        answer = client.get(f"{go_route.PATH}/{typed}")
        assert answer.status_code == 303
        assert answer.headers["location"] == "../../?model=ShapesNet&channel=3"
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "code",
    ["zzzzz", "%2e%2e", "https:%2f%2fevil.example", "%3Cscript%3E", "a" * 5000, "%0d%0aX: 1"],
)
def test_what_is_no_code_leads_nowhere_and_is_not_repeated(client: TestClient, code: str) -> None:
    answer = client.get(f"{go_route.PATH}/{code}")
    assert answer.status_code == 404
    assert "location" not in answer.headers
    assert "evil" not in answer.text
    assert "<script" not in answer.text


def test_an_unknown_code_says_what_to_do_and_only_reading_is_answered(client: TestClient) -> None:
    answer = client.get(f"{go_route.PATH}/zzzzz", headers={"accept-language": "xx;q=0.5,, ;"})
    assert "Whoever showed it can show a new one." in answer.text
    assert 'href="../../"' in answer.text
    assert client.post(f"{go_route.PATH}/zzzzz").status_code == 405


def test_before_a_door_a_code_opens_nothing(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = read_settings({"HOOKVIZ_CLASS_CODE": "chalk & board"})
    monkeypatch.setattr(visitors, "settings", lambda: door)
    code = short_links().code_for("model=ShapesNet&channel=3", "ann")
    for typed in (code, "zzzzz"):
        assert client.get(f"{go_route.PATH}/{typed}").headers["location"] == f"../../?go={typed}"


OPENS = """
import streamlit as st
from hookviz.ui.serving.go_route import open_short_link
open_short_link()
st.write(dict(st.query_params))
"""


def test_a_page_that_was_let_in_opens_the_view_of_its_code() -> None:
    page = AppTest.from_string(OPENS)
    page.query_params["go"] = short_links().code_for("model=ShapesNet&channel=3", "ann")
    page.run()
    assert page.query_params == {"model": "ShapesNet", "channel": "3"}
    page.query_params["go"] = "zzzzz"
    assert "Whoever showed it can show a new one." in page.run().toast[0].value
