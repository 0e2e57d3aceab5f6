"""Bound how often something may happen: wrong codes a minute, a server's ends a minute."""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

_MOST_NAMES = 10_000


class RateLimiter:
    """Sliding-window counter of events, over all names together and of each; for any thread.

    Whoever guesses codes gets no more tries by a new session, since all together are bounded too.
    """

    def __init__(
        self,
        total: int,
        *,
        each: int | None = None,
        seconds: float = 60.0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Count nothing yet.

        Args:
            total: the most events in any `seconds`, of all names together.
            each: the most of one name; None where `total` alone counts.
            seconds: length of the window.
            now: the time in seconds.
        """
        self._total, self._each, self._seconds, self._now = total, each, seconds, now
        self._lock = threading.Lock()
        self._all: deque[float] = deque(maxlen=total)
        self._by_name: OrderedDict[str, deque[float]] = OrderedDict()

    def is_exceeded(self, name: str = "") -> bool:
        """Return whether `name` has to wait until older events are out of the window."""
        since = self._now() - self._seconds
        with self._lock:
            if len(self._all) >= self._total and self._all[0] > since:
                return True
            own = self._by_name.get(name)
            return own is not None and len(own) == own.maxlen and own[0] > since

    def count(self, name: str = "") -> None:
        """Count one event of `name`, now."""
        with self._lock:
            at = self._now()
            self._all.append(at)
            if self._each is None:
                return
            self._by_name.setdefault(name, deque(maxlen=self._each)).append(at)
            self._by_name.move_to_end(name)
            while len(self._by_name) > _MOST_NAMES:
                self._by_name.popitem(last=False)
