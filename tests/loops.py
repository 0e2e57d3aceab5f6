"""Wait in tests: for a condition, or for a coroutine where there is an event loop already."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


def until(condition: Callable[[], Any]) -> Any:
    """What a condition gives once it is true, within a minute."""
    deadline = time.monotonic() + 60
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return value


def in_a_loop_of_its_own(work: Coroutine[Any, Any, Result]) -> Result:
    """What a coroutine gives, run in another thread: the browser's tests leave a loop in this."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
