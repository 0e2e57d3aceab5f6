from collections.abc import Iterator

import pytest
import streamlit as st
from streamlit.runtime.context import StreamlitHeaders

from hookviz.settings import read_settings
from hookviz.ui.serving import client_address as module
from hookviz.ui.serving.client_address import client_address, page_address

PROXIES = "10.0.0.0/8, 127.0.0.1, fc00::/7"


@pytest.fixture(autouse=True)
def proxies(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    chosen = read_settings({"HOOKVIZ_PROXIES": getattr(request, "param", PROXIES)})
    monkeypatch.setattr(module, "settings", lambda: chosen)
    module._proxies.cache_clear()
    yield
    module._proxies.cache_clear()


def address(peer: str, *forwarded: str) -> str:
    headers = [(b"x-forwarded-for", line.encode("latin-1")) for line in forwarded]
    return client_address({"type": "http", "client": (peer, 4321), "headers": headers})


@pytest.mark.parametrize("proxies", [""], indirect=True)
def test_nobody_is_believed_unless_it_is_said() -> None:
    assert address("127.0.0.1", "203.0.113.9") == "127.0.0.1"
    assert address("203.0.113.1", "203.0.113.9") == "203.0.113.1"


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


def test_a_socket_without_an_address_has_none() -> None:
    assert client_address({"type": "http", "client": None, "headers": []}) == ""
    assert client_address({"type": "http", "headers": []}) == ""


@pytest.mark.parametrize("peer", [None, "10.1.2.3"])  # Streamlit's name for this machine is None
def test_a_page_behind_a_proxy_has_its_visitors_address(
    monkeypatch: pytest.MonkeyPatch, peer: str | None
) -> None:
    lines = [("x-forwarded-for", "198.51.100.7"), ("x-forwarded-for", "203.0.113.9")]
    monkeypatch.setattr(type(st.context), "ip_address", peer)
    monkeypatch.setattr(type(st.context), "headers", StreamlitHeaders(lines))
    assert page_address() == "203.0.113.9"
