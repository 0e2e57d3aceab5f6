from collections.abc import Iterator

import pytest
import streamlit as st
from streamlit.runtime.context import StreamlitHeaders

from hookviz.settings import read_settings
from hookviz.ui.serving import visitors
from hookviz.ui.serving.visitors import client_address, is_here, page_address

PROXIES = "10.0.0.0/8, 127.0.0.1, fc00::/7"
HERE = {"Host": "localhost:8501", "Origin": "http://localhost:8501"}


@pytest.fixture(autouse=True)
def proxies(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    chosen = read_settings({"HOOKVIZ_PROXIES": getattr(request, "param", PROXIES)})
    monkeypatch.setattr(visitors, "settings", lambda: chosen)
    visitors._proxies.cache_clear()
    yield
    visitors._proxies.cache_clear()


def address(peer: str, *forwarded: str) -> str:
    headers = [(b"x-forwarded-for", line.encode("latin-1")) for line in forwarded]
    return client_address({"type": "http", "client": (peer, 4321), "headers": headers})


@pytest.mark.parametrize("proxies", [""], indirect=True)
def test_nobody_is_believed_unless_it_is_said() -> None:
    for peer in ("127.0.0.1", "203.0.113.1"):
        assert address(peer, "203.0.113.9") == peer
    assert client_address({"type": "http", "client": None, "headers": []}) == ""  # of a socket
    assert client_address({"type": "http", "headers": []}) == ""


@pytest.mark.parametrize(
    ("peer", "forwarded", "seen"),
    [
        ("203.0.113.1", ["203.0.113.9"], "203.0.113.1"),  # no proxy
        ("10.1.2.3", [], "10.1.2.3"),
        ("10.1.2.3", ["203.0.113.9"], "203.0.113.9"),
        ("::ffff:10.1.2.3", ["::ffff:203.0.113.9"], "203.0.113.9"),  # one socket for both families
        ("10.1.2.3", ["198.51.100.7, 203.0.113.9, 10.9.9.9"], "203.0.113.9"),  # the first is forged
        ("10.1.2.3", ["198.51.100.7", "203.0.113.9"], "203.0.113.9"),  # in a header of its own
        ("10.1.2.3", ["10.0.0.20"], "10.0.0.20"),  # a visitor in the same network
        ("10.1.2.3", ["203.0.113.9:5555"], "203.0.113.9"),
        ("10.1.2.3", ["203.0.113.9, nonsense"], "10.1.2.3"),
        ("10.1.2.3", ["\xff, [::1"], "10.1.2.3"),
        ("2001:db8:1:2:3:4:5:6", [], "2001:db8:1:2::/64"),
        ("fc00::1", ["[2001:db8:1:2:aaaa::1]:443"], "2001:db8:1:2::/64"),
    ],
)
def test_the_rightmost_address_that_is_no_proxy_counts(
    peer: str, forwarded: list[str], seen: str
) -> None:
    assert address(peer, *forwarded) == seen


@pytest.mark.parametrize("peer", [None, "10.1.2.3"])  # Streamlit's name for this machine is None
def test_a_page_behind_a_proxy_has_its_visitors_address(
    monkeypatch: pytest.MonkeyPatch, peer: str | None
) -> None:
    lines = [("x-forwarded-for", "198.51.100.7"), ("x-forwarded-for", "203.0.113.9")]
    monkeypatch.setattr(type(st.context), "ip_address", peer)
    monkeypatch.setattr(type(st.context), "headers", StreamlitHeaders(lines))
    assert page_address() == "203.0.113.9"


@pytest.mark.parametrize(
    "changed",
    [
        {"Host": "cnn.example.org"},
        {"Host": "192.168.1.4:8501"},
        {"Host": "localhost.example.org"},
        {"Origin": "https://cnn.example.org"},  # a proxy that writes its own name into Host
        {"Origin": "null"},
        {"Origin": "http://[::1"},
        {"Host": ""},
        {"X-Forwarded-For": "127.0.0.1"},
        {"x-real-ip": "10.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
        {"Via": "1.1 proxy"},
    ],
    ids=str,
)
def test_whatever_else_is_not(changed: dict[str, str]) -> None:
    assert not is_here({**HERE, **changed})


def test_a_page_of_this_machine_is_here_and_one_that_says_nothing_is_not() -> None:
    for address in ("localhost:8501", "127.0.0.1:9", "[::1]:8501", "LOCALHOST"):
        assert is_here({"Host": address, "Origin": f"http://{address}"})
    assert not is_here({})
    assert not is_here({"Host": "localhost"})


@pytest.mark.parametrize(
    "door", [{"HOOKVIZ_CLASS_CODE": "chalk and board"}, {"HOOKVIZ_LOGIN": "1"}]
)
def test_behind_a_door_those_who_came_in_are_admitted_until_they_go(
    monkeypatch: pytest.MonkeyPatch, door: dict[str, str]
) -> None:
    monkeypatch.setattr(visitors, "settings", lambda: read_settings(door))
    assert not visitors.is_admitted("a-session")
    visitors.admit("ann", "a-session")
    assert visitors.is_admitted("a-session")
    assert not visitors.is_admitted("ann")
    visitors.withdraw("ann")
    visitors.withdraw("ann")
    assert not visitors.is_admitted("a-session")
    monkeypatch.setattr(visitors, "settings", lambda: read_settings({}))
    assert visitors.is_admitted("any")  # without a door
