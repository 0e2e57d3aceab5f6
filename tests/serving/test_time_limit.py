import time

import pytest

from hookviz.serving.time_limit import TimeLimit, TooLongError
from hookviz.settings import settings


def test_progress_passes_on_until_the_time_is_over() -> None:
    shares: list[float] = []
    now = time.monotonic()
    TimeLimit("A run", 9, now + 9).within(shares.append)(0.25)
    assert shares == [0.25]
    with pytest.raises(TooLongError, match="A run took longer than the 9 seconds"):
        TimeLimit("A run", 9, now - 1).within(shares.append)(0.5)
    assert shares == [0.25]


def test_nobody_has_to_look_at_the_progress() -> None:
    TimeLimit.from_now("A run").within()(1.0)


def test_the_settings_say_how_long_a_run_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKVIZ_RUN_SECONDS", "7")
    settings.cache_clear()
    try:
        limit = TimeLimit.from_now("A run")
    finally:
        settings.cache_clear()
    assert limit.seconds == 7
    assert 6 < limit.deadline - time.monotonic() <= 7
