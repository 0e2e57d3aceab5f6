"""A bounded number of runs at once, and a fair queue for those who wait."""

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

Tell = Callable[[int], None]
"""Told one's position in the queue, 1 for the next; what it raises leaves the queue."""

_EVERY = 0.4  # seconds between two times that somebody who waits is told their place
_GRACE = 2.0  # seconds for which the place of somebody who left is held


@dataclass(eq=False, slots=True)
class _Ticket:
    """One place in the queue; left at `left`, None while they wait; `behind` all who are not."""

    behind: bool = False
    left: float | None = None


class Admission:
    """Lets in so many runs at once, in the order in which people came.

    A person has one ticket, from when they ask until their run is over: a second run of the same
    person asks again only after the first, so nobody has two places. Who leaves is dropped at
    once, and takes up their old place where they ask again within two seconds: Streamlit ends and
    repeats a page's run at every click, which should not send anybody back to the end.

    What goes on by itself, such as a stream of frames, asks to stand behind the people who wait for
    an answer: they all go first, and one place of several is always kept free of it.
    """

    def __init__(
        self,
        runs: int,
        may_start: Callable[[], bool] = lambda: True,
        grace: float = _GRACE,
    ) -> None:
        """Start with nobody.

        Args:
            runs: how many go on at once.
            may_start: asked before a run starts; while it says no the queue waits, unless nobody
                runs: what is going on has an end, and after it things are as good as they get.
            grace: seconds for which the place of somebody who left is held.
        """
        self.runs = runs
        self._may_start = may_start
        self._grace = grace
        self._changed = threading.Condition()
        self._queue: dict[Hashable, _Ticket] = {}  # in the order of arrival
        self._running: dict[Hashable, int] = {}  # the thread of each person's run
        self._behind: set[Hashable] = set()  # those of them who asked to stand behind the others

    @property
    def running(self) -> int:
        """How many run now."""
        with self._changed:
            return len(self._running)

    @property
    def waiting(self) -> int:
        """How many wait now, without what stands behind the people."""
        with self._changed:
            return sum(not ticket.behind for ticket in self._present())

    @contextmanager
    def turn(
        self, who: Hashable, tell: Tell | None = None, *, behind: bool = False
    ) -> Iterator[float]:
        """Wait for one's turn, and hold it for the block; gives the seconds waited.

        Inside of one's own turn another one is had at once, in the same thread.

        Args:
            who: tells people apart; a session.
            tell: called in this thread when the position changes, and at least twice a second.
            behind: let all go first who do not ask for this; those who do take their turns one
                after the other.
        """
        if self._running.get(who) == threading.get_ident():
            yield 0.0
            return
        waited = self._wait(who, tell, behind=behind)
        try:
            yield waited
        finally:
            with self._changed:
                del self._running[who]
                self._behind.discard(who)
                self._changed.notify_all()

    def _wait(self, who: Hashable, tell: Tell | None, *, behind: bool) -> float:
        started = time.monotonic()
        ticket: _Ticket | None = None
        told, again = 0, 0.0  # the position last told, and when to tell next
        try:
            while True:
                with self._changed:
                    ticket = ticket or self._ticket(who, behind=behind)
                    if ticket is not None and self._may_go(ticket):
                        self._running[who] = threading.get_ident()
                        if behind:
                            self._behind.add(who)
                        del self._queue[who]
                        self._changed.notify_all()  # there may be room for the next too
                        return time.monotonic() - started
                    position = self._position(ticket)
                    left = again - time.monotonic()
                    if position == told and left > 0:
                        self._changed.wait(left)
                        continue
                told, again = position, time.monotonic() + _EVERY
                if tell is not None:
                    tell(position)  # without the lock: it may take its time
        except BaseException:
            with self._changed:
                if ticket is not None:
                    ticket.left = time.monotonic()
                    self._changed.notify_all()
            raise

    # All below are called with the lock held.

    def _ticket(self, who: Hashable, *, behind: bool) -> _Ticket | None:
        """A ticket at the end of the queue, or the one just left; None while they have another."""
        self._present()
        ticket = self._queue.get(who)
        if ticket is None and who not in self._running:
            ticket = self._queue[who] = _Ticket(behind)
            return ticket
        if ticket is not None and ticket.left is not None:
            ticket.left = None
            self._changed.notify_all()  # those behind it moved back
            return ticket
        return None

    def _present(self) -> list[_Ticket]:
        """Those who wait, people first, first come first; who left too long ago is forgotten."""
        now = time.monotonic()
        for who, ticket in list(self._queue.items()):
            if ticket.left is not None and now - ticket.left >= self._grace:
                del self._queue[who]
        present = [ticket for ticket in self._queue.values() if ticket.left is None]
        return sorted(present, key=lambda ticket: ticket.behind)

    def _position(self, ticket: _Ticket | None) -> int:
        present = self._present()
        return present.index(ticket) + 1 if ticket is not None else len(present) + 1

    def _may_go(self, ticket: _Ticket) -> bool:
        if len(self._running) >= self.runs or self._present()[0] is not ticket:
            return False
        if ticket.behind and len(self._behind) >= max(1, self.runs - 1):
            return False
        return self._may_start() or not self._running


class RunPlan(NamedTuple):
    """How the cores are shared out.

    Attributes:
        runs: how many compute at once.
        threads: of each run.
    """

    runs: int
    threads: int


def plan(runs: int, threads: int, cores: int, memory: int) -> RunPlan:
    """How many runs at once, and threads for each, so that together they fill the cores.

    At least two at once, so that one long run does not hold up everybody, and one for every four
    cores; at most one for every gigabyte.

    Args:
        runs: what was chosen; 0 for automatic.
        threads: what was chosen; 0 for automatic.
        cores: processors that there are; 0 for less than one.
        memory: bytes that there are.
    """
    runs = runs or max(1, min(max(2, cores // 4), memory >> 30))
    return RunPlan(runs, threads or max(1, cores // runs))
