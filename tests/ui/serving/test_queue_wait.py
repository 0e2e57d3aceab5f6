import io
import json
import logging
import time
from collections.abc import Iterator

import pytest
from streamlit.runtime import caching
from streamlit.testing.v1 import AppTest

from hookviz.serving import capacity, logs
from hookviz.serving.fair_queue import FairQueue
from hookviz.settings import settings
from hookviz.ui.serving.explorer_sessions import explorer_sessions
from tests.ui.conftest import APP_TEST_SESSION

RUN = """
import streamlit as st
from hookviz.errors import HookVizError
from hookviz.ui.serving.queue_wait import turn
try:
    with turn("ResNet-18", model="resnet18", layer="conv1") as run:
        st.write("computed")
        run.limit.within(lambda share: st.write(f"half: {share}"))(0.5)
except HookVizError as error:
    st.error(str(error))
"""


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    logger = logging.getLogger("hookviz")
    before = logger.handlers[:], logger.level
    settings.cache_clear()
    capacity.queue.cache_clear()
    yield
    settings.cache_clear()
    capacity.queue.cache_clear()
    logger.handlers[:], level = before
    logger.setLevel(level)


def test_a_turn_that_is_free_is_had_at_once_and_written_down() -> None:
    stream = io.StringIO()
    logs.set_up("json", stream)
    done = AppTest.from_string(RUN, default_timeout=30).run()
    done.run()
    assert [element.value for element in done.markdown] == ["computed", "half: 0.5"]
    assert not done.info
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert first["event"] == "capture"
    assert (first["model"], first["layer"], first["outcome"]) == ("resnet18", "conv1", "done")
    assert first["session"] == second["session"]
    assert first["request"] != second["request"]


def test_who_waits_and_goes_is_in_the_queue_no_more() -> None:
    fair_queue: FairQueue = capacity.queue()
    fair_queue.runs = 1
    with fair_queue.turn("first"), pytest.raises(RuntimeError, match="timed out"):
        AppTest.from_string(RUN, default_timeout=2).run()
    deadline = time.monotonic() + 20
    while (fair_queue.running or fair_queue.waiting) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (fair_queue.running, fair_queue.waiting) == (0, 0)


def test_a_run_over_its_time_is_ended_and_says_what_takes_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOOKVIZ_RUN_SECONDS", "1")
    slow = RUN.replace('st.write("computed")', "import time; time.sleep(1.1)")
    done = AppTest.from_string(slow, default_timeout=30).run()
    assert "ResNet-18 took longer than the 1 seconds" in done.error[0].value
    assert "HOOKVIZ_RUN_SECONDS" in done.error[0].value
    assert not done.markdown
    assert capacity.queue().running == 0


def test_the_end_is_told_each_time_that_the_page_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit keeps the session for a while, and the page may come back to it and go again."""
    ended: list[str] = []
    monkeypatch.setattr(explorer_sessions(), "withdraw", ended.append)
    here = AppTest.from_string("from hookviz.ui.serving.queue_wait import session; session()")
    for _ in range(2):
        here.run()
        caching.clear_session_resource_cache(APP_TEST_SESSION)
    assert len(ended) == 2
    assert len(set(ended)) == 1


def test_runs_are_measured_where_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    capacity.metrics.cache_clear()
    assert capacity.metrics() is None
    monkeypatch.setenv("HOOKVIZ_METRICS_PORT", "9")
    settings.cache_clear()
    capacity.metrics.cache_clear()
    try:
        AppTest.from_string(RUN).run()
        metrics = capacity.metrics()
        assert metrics is not None
        labels = {"kind": "capture", "outcome": "done"}
        registry = metrics._registry
        assert registry.get_sample_value("hookviz_runs_total", labels) == 1
        assert registry.get_sample_value("hookviz_model_limit_bytes") == capacity.model_pool().limit
    finally:
        capacity.metrics.cache_clear()
