import socket
import urllib.request

import pytest

import hookviz
from hookviz import own
from hookviz.errors import HookVizError
from tests.conftest import Tiny, seeded


def test_explore_serves_the_app_until_it_is_closed() -> None:
    with hookviz.explore(seeded(Tiny), name="my net", open_browser=False) as explorer:
        assert explorer.url.endswith("/?model=my+net")
        assert "my net" in own.models()
        with urllib.request.urlopen(explorer.url, timeout=10) as answer:
            assert b"Streamlit" in answer.read()
    assert "my net" not in own.models()
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(explorer.url, timeout=2)


def test_a_port_in_use_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(HookVizError, match=f"Port {port} can't be used"):
            hookviz.explore(seeded(Tiny), port=port, open_browser=False)
    assert "Tiny" not in own.models()


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(hookviz.ModelError, match="not int"):
        hookviz.explore(3, open_browser=False)  # type: ignore[arg-type]
