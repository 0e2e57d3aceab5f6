"""Short codes for long links of this page, for a while and in the memory of one process.

A code stands for what comes after the question mark, so it leads to this page and nowhere else.
"""

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from hookviz.settings import settings

ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
"""Small letters and digits; without those that look alike from the last row."""

_LETTERS = 5
_MOST, _OF_ONE = 1000, 20
_SECONDS = 12 * 3600.0


def start_of(server: int) -> str:
    """With what the codes of one of several servers begin."""
    return ALPHABET[server % len(ALPHABET)]


@dataclass(frozen=True, slots=True)
class _Kept:
    query: str
    owner: str
    until: float


class ShortLinks:
    """Codes and what they stand for; the one that was asked for longest ago goes first."""

    def __init__(
        self,
        most: int = _MOST,
        of_one: int = _OF_ONE,
        seconds: float = _SECONDS,
        clock: Callable[[], float] = time.monotonic,
        server: int | None = None,
    ) -> None:
        """Know no code yet.

        Args:
            most: how many codes there are at once.
            of_one: how many of them are one owner's: a flood takes nobody else's away.
            seconds: how long a code holds after it was last asked for by its owner.
            clock: seconds that only grow.
            server: which of several servers this is, from 0, told by the first letter of its codes;
                None where it is the only one.
        """
        self._most, self._of_one, self._seconds, self._clock = most, of_one, seconds, clock
        self._starts = ALPHABET if server is None else start_of(server)
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def code_for(self, query: str, owner: str) -> str:
        """The code of a query string: the same one again for the same owner while it holds."""
        with self._lock:
            self._forget()
            own = [code for code, kept in self._kept.items() if kept.owner == owner]
            code = next((each for each in own if self._kept[each].query == query), None)
            if code is None:
                if len(own) >= self._of_one:
                    del self._kept[own[0]]
                if len(self._kept) >= self._most:
                    self._kept.popitem(last=False)
                code = self._new()
            self._kept[code] = _Kept(query, owner, self._clock() + self._seconds)
            self._kept.move_to_end(code)
            return code

    def query_of(self, code: str) -> str | None:
        """What a code stands for, in whatever case it was typed; None where it is not known."""
        with self._lock:
            self._forget()
            kept = self._kept.get(code.lower())
            return None if kept is None else kept.query

    def __len__(self) -> int:
        return len(self._kept)

    def _new(self) -> str:
        while True:
            rest = (secrets.choice(ALPHABET) for _ in range(_LETTERS - 1))
            code = secrets.choice(self._starts) + "".join(rest)
            if code not in self._kept:
                return code

    def _forget(self) -> None:
        """Drop what is too old; those that end first stand first."""
        now = self._clock()
        while self._kept and next(iter(self._kept.values())).until <= now:
            self._kept.popitem(last=False)


@cache
def short_links() -> ShortLinks:
    """The codes of this process."""
    return ShortLinks(server=settings().server_number)
