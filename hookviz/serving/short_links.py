"""Shorten links of this page to codes, for a while and in the memory of one process.

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
    """Return the letter with which the codes of one of several servers begin."""
    return ALPHABET[server % len(ALPHABET)]


@dataclass(frozen=True, slots=True)
class _Link:
    query: str
    owner: str
    until: float  # on the clock of the links


class ShortLinks:
    """Query strings by code; the one that was asked for longest ago is dropped first."""

    def __init__(
        self,
        most: int = _MOST,
        of_one: int = _OF_ONE,
        seconds: float = _SECONDS,
        clock: Callable[[], float] = time.monotonic,
        server: int | None = None,
    ) -> None:
        """Start without codes.

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
        self._links: OrderedDict[str, _Link] = OrderedDict()
        self._lock = threading.Lock()

    def code_for(self, query: str, owner: str) -> str:
        """Return the code of a query string; an owner gets the same one while it holds."""
        with self._lock:
            self._drop_expired()
            own = [code for code, link in self._links.items() if link.owner == owner]
            code = next((code for code in own if self._links[code].query == query), None)
            if code is None:
                if len(own) >= self._of_one:
                    del self._links[own[0]]
                if len(self._links) >= self._most:
                    self._links.popitem(last=False)
                code = self._new()
            self._links[code] = _Link(query, owner, self._clock() + self._seconds)
            self._links.move_to_end(code)
            return code

    def query_of(self, code: str) -> str | None:
        """Return what a code stands for, in whatever case it was typed; None for an unknown one."""
        with self._lock:
            self._drop_expired()
            link = self._links.get(code.lower())
            return None if link is None else link.query

    def __len__(self) -> int:
        return len(self._links)

    def _new(self) -> str:
        while True:
            rest = (secrets.choice(ALPHABET) for _ in range(_LETTERS - 1))
            code = secrets.choice(self._starts) + "".join(rest)
            if code not in self._links:
                return code

    def _drop_expired(self) -> None:
        # those that end first stand first
        now = self._clock()
        while self._links and next(iter(self._links.values())).until <= now:
            self._links.popitem(last=False)


@cache
def short_links() -> ShortLinks:
    """Return the codes of this process."""
    return ShortLinks(server=settings().server_number)
