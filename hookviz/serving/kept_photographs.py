"""Keep a person's own photographs for a page that is loaded again, which is another session.

A browser gets back its own ones alone, for minutes after the page has gone, and by the name that
its link has. What is kept counts in the process's budget of activations and may be evicted as
they are.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

from hookviz.capturing.cache import ByteCache
from hookviz.machine.memory import MEGABYTE
from hookviz.serving import capacity
from hookviz.settings import settings

SECONDS = 600.0
"""How long a photograph is kept after its page has gone."""


@dataclass(frozen=True, slots=True)
class OwnFile:
    """File of a person's own, as it came.

    Attributes:
        name: in the link; made up, and says nothing about the photograph.
        title: what it is called.
        data: its bytes.
    """

    name: str
    title: str
    data: bytes = field(repr=False)


def _in_background(seconds: float, act: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, act)
    timer.daemon = True  # a server that ends does not wait for it
    timer.start()


class KeptPhotographs:
    """Photographs of the pages that are open, and for a while of those that have gone."""

    def __init__(
        self,
        files: ByteCache,
        seconds: float = SECONDS,
        clock: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], None]], None] = _in_background,
    ) -> None:
        """Start without any.

        Args:
            files: bounds the bytes of what is kept of pages that have gone.
            seconds: how long that is.
            clock: seconds that only grow.
            later: calls a function after so many seconds.
        """
        self._files, self._seconds, self._clock, self._later = files, seconds, clock, later
        self._open: dict[str, tuple[str, Sequence[OwnFile]]] = {}
        self._until: dict[tuple[str, str], float] = {}  # those that end first stand first
        self._wakes = False
        self._lock = threading.Lock()

    @property
    def used(self) -> int:
        """Bytes that are kept of pages that have gone."""
        return self._files.used

    def hold(self, owner: str, browser: str, files: Sequence[OwnFile]) -> None:
        """Note what a page has, which costs nothing while the page itself keeps it.

        Args:
            owner: the page's session.
            browser: stands for its browser and can't be guessed; where it is empty nothing is kept.
            files: all that the page has, the newest first.
        """
        if not browser:
            return
        with self._lock:
            self._open[owner] = browser, files
            for file in files:
                self._drop((browser, file.name))

    def leave(self, owner: str) -> None:
        """Keep what a page had for a while, now that it has gone."""
        with self._lock:
            browser, files = self._open.pop(owner, ("", ()))
            ends = self._clock() + self._seconds
            for file in reversed(files):
                key = (browser, file.name)
                if self._of_open_page(*key) is None:
                    self._drop(key)
                    if self._files.put(key, file, len(file.data)):
                        self._until[key] = ends
            self._wake_later()

    def find(self, browser: str, name: str) -> OwnFile | None:
        """Return the photograph of that name which this browser gave; None where there is none."""
        with self._lock:
            self._drop_expired()
            found: OwnFile | None = self._of_open_page(browser, name)
            return found or self._files.get((browser, name))

    def _of_open_page(self, browser: str, name: str) -> OwnFile | None:
        held = (files for owner, files in self._open.values() if owner == browser)
        return next((file for files in held for file in files if file.name == name), None)

    def _drop(self, key: tuple[str, str]) -> None:
        self._until.pop(key, None)
        self._files.drop(key)

    def _drop_expired(self) -> None:
        now = self._clock()
        while self._until and next(iter(self._until.values())) <= now:
            self._drop(next(iter(self._until)))

    def _wake_later(self) -> None:
        """See to it that what is kept goes at its time, though nobody asks for it."""
        if self._until and not self._wakes:
            self._wakes = True
            self._later(next(iter(self._until.values())) - self._clock(), self._wake)

    def _wake(self) -> None:
        with self._lock:
            self._wakes = False
            self._drop_expired()
            self._wake_later()


@cache
def kept_photographs() -> KeptPhotographs:
    """Return those of this process, which have as many bytes together as one session."""
    return KeptPhotographs(capacity.activation_budget().cache(settings().session_mb * MEGABYTE))
