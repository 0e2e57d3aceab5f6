"""Expectations are asked with little time first, and in the end with all."""

from typing import Any

import pytest
from playwright.sync_api import Error

from tests.e2e.patience import _often, _once_there


def asked_with(true_from: int, **options: float) -> list[float]:
    """The times that an expectation was given, which holds where it is given that much."""
    timeouts: list[float] = []

    def holds(_self: object, timeout: float) -> None:
        timeouts.append(timeout)
        if timeout < true_from:
            raise AssertionError(f"not within {timeout:g} ms")

    _often(holds)(None, **options)
    return timeouts


def test_what_is_there_is_seen_at_once_and_what_comes_late_is_waited_for() -> None:
    assert asked_with(0) == [400]
    assert asked_with(1_000) == [400, 2_400]
    assert asked_with(15_000) == [400, 2_400, 20_000]


def test_no_more_time_is_given_than_is_asked_for() -> None:
    assert asked_with(500, timeout=500) == [400, 500]
    assert asked_with(100, timeout=100) == [100]
    with pytest.raises(AssertionError, match="not within 500 ms"):
        asked_with(5_000, timeout=500)


def test_a_click_is_made_once_and_says_itself_what_is_missing() -> None:
    done: list[dict[str, Any]] = []

    class Missing:
        def wait_for(self, timeout: float) -> None:
            raise Error(f"not there after {timeout:g} ms")

    def click(_self: object, **options: Any) -> None:
        done.append(options)

    _once_there(click)(Missing(), timeout=60_000)
    assert done == [{"timeout": 60_000}]
