"""Coroutines in tests that have an event loop already."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


def in_a_loop_of_its_own(work: Coroutine[Any, Any, Result]) -> Result:
    """What a coroutine gives, run in another thread: the browser's tests leave a loop in this."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
