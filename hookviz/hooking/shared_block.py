"""Change something of the whole process for a block that several threads may be in at once."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager


class SharedBlock(AbstractContextManager[None]):
    """Block of which the first thread to enter makes the change, and the last to leave undoes it.

    Args:
        begin: makes the change, and returns the function that undoes it.
    """

    def __init__(self, begin: Callable[[], Callable[[], object]]) -> None:
        self._begin = begin
        self._lock = threading.Lock()
        self._blocks = 0
        self._end: Callable[[], object] = bool

    def __enter__(self) -> None:
        with self._lock:
            if not self._blocks:
                self._end = self._begin()
            self._blocks += 1

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks:
                self._end()
