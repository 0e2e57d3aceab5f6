"""Let each test of the page be a person of their own, as AppTest's are not by themselves."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.runtime import caching

from hookviz.settings import settings
from scripts.servers import free_port

APP_TEST_SESSION = "test session id"  # of every AppTest, in `local_script_runner.py`


@pytest.fixture(autouse=True)
def end_session() -> Iterator[None]:
    """End the session of all AppTests after each test, as a page that is closed ends its own.

    Otherwise one cache of activations goes from test to test, fills up, and drops what it used
    least: a test finds half a network in it, which half depends on what ran before.
    """
    yield
    caching.clear_session_resource_cache(APP_TEST_SESSION)


@pytest.fixture
def no_weights_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No weights are on this machine, and none can be fetched."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setenv("HOOKVIZ_WEIGHTS_URL", f"http://127.0.0.1:{free_port()}")
    settings.cache_clear()
    yield
    settings.cache_clear()
