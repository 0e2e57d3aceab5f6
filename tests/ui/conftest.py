"""Let each test of the page be a person of their own, as AppTest's are not by themselves."""

from collections.abc import Iterator

import pytest
from streamlit.runtime import caching

APP_TEST_SESSION = "test session id"  # of every AppTest, in `local_script_runner.py`


@pytest.fixture(autouse=True)
def end_session() -> Iterator[None]:
    """End the session of all AppTests after each test, as a page that is closed ends its own.

    Otherwise one cache of activations goes from test to test, fills up, and drops what it used
    least: a test finds half a network in it, which half depends on what ran before.
    """
    yield
    caching.clear_session_resource_cache(APP_TEST_SESSION)
