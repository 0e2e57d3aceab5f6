"""Collect garbage when it is due, between clicks instead of after each of them.

Python frees most objects when the last reference to them goes. What refers to itself in a circle
waits for the collector, which has to look at every live object: half a million after torch is
imported, and more for each session.
"""

import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hookviz.machine import memory

_YOUNG = 10_000
"""Objects made but not freed after which Python looks at them, and at nothing else."""

_DUE = 2
"""Times ten of `_YOUNG` after which all that came since the last time is worth looking at."""

_OVERDUE = 5 * _DUE
"""As many after which it can't wait for a moment without a run."""

_IDLE = 5.0  # seconds without a run after which nobody minds a pause of half a second
_EVERYTHING = 60.0  # seconds between two looks at everything, where the server was idle
_AT_LEAST = 900.0  # and where it never was
_GROWN = 1.25  # times the memory after the last look, above which it does not wait to be idle
_STEP = 0.25  # seconds between two questions whether something is due
_NEVER = 1_000_000_000


@contextmanager
def put_off() -> Iterator[None]:
    """Collect nothing during the block: a start makes a million objects and loses hardly one."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class GarbageCollector:
    """Garbage collector of the process, in a thread of its own.

    What outlived a collection is frozen: the next one does not look at it again. So each costs as
    much as came since the last. Everything is looked at when the server is idle, or has grown: what
    visitors leave behind is frozen by then. What that frees is handed back to the system.
    """

    def __init__(self, used: Callable[[], int] = memory.resident) -> None:
        """Take `used`, which returns the bytes that the process has, and do nothing yet."""
        self._used = used
        self._settled = used()
        self._lock = threading.Lock()
        self._runs = 0
        self._quiet_since = time.monotonic()
        self._everything_at = time.monotonic()
        self._stopped = threading.Event()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Put off collecting for the block, in which the page runs, unless it can't wait."""
        with self._lock:
            self._runs += 1
        try:
            yield
        finally:
            with self._lock:
                self._runs -= 1
                self._quiet_since = time.monotonic()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Collect during the block, in place of what Python does by itself.

        What is there already is frozen, and looked at as soon as the server is idle: whoever comes
        first does not wait for that.
        """
        thresholds = gc.get_threshold()
        gc.set_threshold(_YOUNG, 10, _NEVER)
        gc.freeze()
        self._settled = self._used()
        self._everything_at = time.monotonic() - _EVERYTHING
        self._stopped.clear()
        thread = threading.Thread(target=self._keep_collecting, name="garbage", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join()
            gc.set_threshold(*thresholds)
            gc.unfreeze()

    def collect_if_due(self, now: float) -> str:
        """Collect what is due at time `now` of the monotonic clock.

        Returns:
            ``"everything"``, ``"new"`` for what came since the last time, or ``""`` for nothing.
        """
        with self._lock:
            at_rest = self._runs == 0
            idle = at_rest and now - self._quiet_since > _IDLE
            worked = self._quiet_since > self._everything_at
        since = now - self._everything_at
        wanted = (idle and worked) or self._used() > _GROWN * self._settled
        if since > _AT_LEAST or (wanted and since > _EVERYTHING):
            self._collect_everything(now)
            return "everything"
        grown = gc.get_count()[2]
        if grown >= _OVERDUE or (at_rest and grown >= _DUE):
            gc.collect()
            gc.freeze()
            return "new"
        return ""

    def _collect_everything(self, now: float) -> None:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        memory.return_to_system()
        self._everything_at, self._settled = now, self._used()

    def _keep_collecting(self) -> None:
        while not self._stopped.wait(_STEP):
            self.collect_if_due(time.monotonic())
