"""Lines of one's own run only for a browser on the server's machine, with nothing in between."""

import pytest

from hookviz.ui.serving.own_machine import is_here

HERE = {"Host": "localhost:8501", "Origin": "http://localhost:8501"}


@pytest.mark.parametrize("address", ["localhost:8501", "127.0.0.1:9", "[::1]:8501", "LOCALHOST"])
def test_a_page_of_this_machine_is_here(address: str) -> None:
    assert is_here({"Host": address, "Origin": f"http://{address}"})


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
    assert is_here(HERE)
    assert not is_here({**HERE, **changed})


def test_a_connection_that_says_nothing_is_not() -> None:
    assert not is_here({})
    assert not is_here({"Host": "localhost"})
