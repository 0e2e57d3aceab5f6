"""How often a code may be guessed."""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

_MOST_NAMES = 10_000


class Tries:
    """Wrong codes of the last minute: of each session, and of all together."""

    def __init__(
        self,
        one: int = 10,
        together: int = 60,
        seconds: float = 60.0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Allow so many wrong codes in any `seconds`: `one` session, and all `together`."""
        self._one, self._together, self._seconds, self._now = one, together, seconds, now
        self._lock = threading.Lock()
        self._all: deque[float] = deque(maxlen=together)
        self._by_name: OrderedDict[str, deque[float]] = OrderedDict()

    def are_too_many(self, name: str) -> bool:
        """Whether that session has to wait; then a right code is no good either."""
        since = self._now() - self._seconds
        with self._lock:
            own = self._by_name.get(name, deque[float]())
            return any(
                len(times) >= most and times[0] > since
                for times, most in ((self._all, self._together), (own, self._one))
            )

    def count(self, name: str) -> None:
        """One wrong code more, of that session."""
        with self._lock:
            own = self._by_name.setdefault(name, deque(maxlen=self._one))
            self._by_name.move_to_end(name)
            for times in (self._all, own):
                times.append(self._now())
            while len(self._by_name) > _MOST_NAMES:
                self._by_name.popitem(last=False)
