"""Bound how often something may happen: wrong codes a minute, a server's ends a minute."""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

_MOST_NAMES = 10_000


class RateLimiter:
    """Sliding-window counter of the events of each name; for any thread."""

    def __init__(
        self,
        limit: int,
        *,
        seconds: float = 60.0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Count nothing yet.

        Args:
            limit: the most events of one name in any `seconds`.
            seconds: length of the window.
            now: the time in seconds.
        """
        self._limit, self._seconds, self._now = limit, seconds, now
        self._lock = threading.Lock()
        self._by_name: OrderedDict[str, deque[float]] = OrderedDict()

    def is_exceeded(self, name: str = "", limit: int | None = None) -> bool:
        """Return whether `name` has to wait until older events are out of the window.

        Args:
            name: whose events are counted.
            limit: fewer than the limiter's own, for this question.
        """
        since, limit = self._now() - self._seconds, limit or self._limit
        with self._lock:
            own = self._by_name.get(name)
            return own is not None and len(own) >= limit and own[-limit] > since

    def count(self, name: str = "") -> None:
        """Count one event of `name`, now."""
        with self._lock:
            self._by_name.setdefault(name, deque(maxlen=self._limit)).append(self._now())
            self._by_name.move_to_end(name)
            while len(self._by_name) > _MOST_NAMES:
                self._by_name.popitem(last=False)


class GuessLimiter:
    """Bounds wrong codes a minute: ten of a session, three where its address has had sixty.

    So the right code of a pupil passes, whatever a stranger at the school's address types. Whoever
    guesses by new sessions pays for three codes with a page.
    """

    def __init__(
        self,
        of_session: int = 10,
        of_address: int = 60,
        at_least: int = 3,
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Count nothing yet.

        Args:
            of_session: the most wrong codes of one session in any minute.
            of_address: the most of all sessions at one address.
            at_least: those that a session has where its address has no more.
            now: the time in seconds.
        """
        self._sessions = RateLimiter(of_session, now=now)
        self._addresses = RateLimiter(of_address, now=now)
        self._at_least = at_least

    def is_exceeded(self, session: str, address: str) -> bool:
        """Return whether a session at an address has to wait before it may try a code."""
        return self._sessions.is_exceeded(session) or (
            self._addresses.is_exceeded(address)
            and self._sessions.is_exceeded(session, self._at_least)
        )

    def count(self, session: str, address: str) -> None:
        """Count one wrong code of a session at an address."""
        self._sessions.count(session)
        self._addresses.count(address)
