"""A bounded number of runs at once, and a fair queue for those who wait."""

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

Tell = Callable[[int], None]
"""Told one's position in the queue, 1 for the next; what it raises leaves the queue."""

_EVERY = 0.4  # seconds between two times that somebody who waits is told their place
_GRACE = 2.0  # seconds for which the place of somebody who left is held
_LONG_BEHIND = 5.0  # seconds after which a run that gave way stands among the people again
_QUIET = 2.0  # seconds without anybody who asks, after which no place is kept free for people


@dataclass(eq=False, slots=True)
class _Ticket:
    """One place in the queue, or the run of who had it.

    Attributes:
        behind: whether all go first who are not.
        begun: since when a run waits that gave way and goes on here; None for a new one.
        left: when they left; None while they wait.
    """

    behind: bool = False
    begun: float | None = None
    left: float | None = None


class FairQueue:
    """Lets in so many runs at once, in the order in which people came.

    A person has one ticket, from when they ask until their run is over: a second run of the same
    person asks again only after the first, so nobody has two places. Who leaves is dropped at
    once, and takes up their old place where they ask again within two seconds: Streamlit ends and
    repeats a page's run at every click, which should not send anybody back to the end.

    What goes on by itself, such as a stream of frames, asks to stand behind the people who wait for
    an answer: they all go first, and one place of several is always kept free of it.

    What runs for long gives way at intervals: it leaves its turn to those who wait and goes on
    behind them. Those who explore go first, those who gave way take turns. Whoever has stood behind
    for five seconds stands among the people again: a crowd that never pauses slows a long run down
    and can't stop it. Where nobody has asked for two seconds, no place is kept free of them.
    """

    def __init__(
        self,
        runs: int,
        may_start: Callable[[], bool] = lambda: True,
        grace: float = _GRACE,
        *,
        long_behind: float = _LONG_BEHIND,
        quiet: float = _QUIET,
    ) -> None:
        """Start with nobody.

        Args:
            runs: how many go on at once.
            may_start: asked before a run starts; while it says no the queue waits, unless nobody
                runs: what is going on has an end, and after it things are as good as they get.
            grace: seconds for which the place of somebody who left is held.
            long_behind: seconds after which what gave way stands among the people again.
            quiet: seconds without a person who asks, after which what gave way may have all places.
        """
        self.runs = runs
        self._may_start = may_start
        self._grace, self._long_behind, self._quiet = grace, long_behind, quiet
        self._asked = -quiet  # when a person asked last
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
        waited = self._wait(who, tell, _Ticket(behind))
        try:
            yield waited
        finally:
            with self._changed:
                # A run that was ended while it gave way has no turn any more, and the same person's
                # next run may have one.
                if self._running.get(who) == threading.get_ident():
                    self._leave(who)

    def give_way(self, who: Hashable, tell: Tell | None = None) -> float:
        """Let in who waits and go on behind them; the seconds waited, 0 where nobody is let in.

        To be called within one's own turn, which is the same turn afterwards. What `tell` raises
        ends it: the way out of the turn's block holds nothing then.

        Args:
            who: whose turn it is.
            tell: as in `turn`.
        """
        with self._changed:
            if self._running.get(who) != threading.get_ident() or not self._lets_in(who):
                return 0.0
            self._leave(who)
            ticket = self._queue[who] = _Ticket(behind=True, begun=time.monotonic())
        return self._wait(who, tell, ticket)

    def _wait(self, who: Hashable, tell: Tell | None, wanted: _Ticket) -> float:
        started = time.monotonic()
        # One who gives way has a ticket from the same moment on, so that nobody is in between.
        ticket = wanted if wanted.begun is not None else None
        told, again = 0, 0.0  # the position last told, and when to tell next
        try:
            while True:
                with self._changed:
                    ticket = ticket or self._ticket(who, wanted)
                    if ticket is not None and self._may_go(ticket):
                        self._running[who] = threading.get_ident()
                        if ticket.behind and not self._is_quiet(ticket):
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

    def _leave(self, who: Hashable) -> None:
        del self._running[who]
        self._behind.discard(who)
        self._changed.notify_all()

    def _ticket(self, who: Hashable, wanted: _Ticket) -> _Ticket | None:
        """A ticket at the end of the queue, or the one just left; None while they have another."""
        if not wanted.behind:
            self._asked = time.monotonic()
        self._present()
        ticket = self._queue.get(who)
        if ticket is not None and ticket.left is not None:
            if ticket.begun is None and ticket.behind == wanted.behind:
                ticket.left = None
                self._changed.notify_all()  # those behind it moved back
                return ticket
            del self._queue[who]  # a place of another kind: the run that had given way is over
            ticket = None
        if ticket is None and who not in self._running:
            self._queue[who] = wanted
            return wanted
        return None

    def _present(self) -> list[_Ticket]:
        """Those who wait, people first, first come first; who left too long ago is forgotten."""
        now = time.monotonic()
        for who, ticket in list(self._queue.items()):
            if ticket.left is not None and now - ticket.left >= self._grace:
                del self._queue[who]
            elif ticket.begun is not None and now - ticket.begun >= self._long_behind:
                ticket.behind = False
        present = [ticket for ticket in self._queue.values() if ticket.left is None]
        return sorted(present, key=lambda ticket: ticket.behind)

    def _position(self, ticket: _Ticket | None) -> int:
        present = self._present()
        return present.index(ticket) + 1 if ticket is not None else len(present) + 1

    def _may_go(self, ticket: _Ticket) -> bool:
        if len(self._running) >= self.runs or self._present()[0] is not ticket:
            return False
        if not self._has_place_for(ticket, len(self._behind)):
            return False
        # What goes on has the memory that it takes; only what is new takes more.
        return ticket.begun is not None or self._may_start() or not self._running

    def _lets_in(self, who: Hashable) -> bool:
        """Whether somebody could run in place of `who`."""
        first = next(iter(self._present()), None)
        if first is None or not self._has_place_for(first, len(self._behind - {who})):
            return False
        if len(self._running) < self.runs and self._has_place_for(first, len(self._behind)):
            return False  # there is room already
        # Where memory is short nobody new is let in while somebody holds some and waits.
        return first.begun is not None or self._may_start()

    def _has_place_for(self, ticket: _Ticket, running_behind: int) -> bool:
        if not ticket.behind or self._is_quiet(ticket):
            return True
        return running_behind < max(1, self.runs - 1)

    def _is_quiet(self, ticket: _Ticket) -> bool:
        """Whether no place has to be kept free of a run that gave way."""
        return ticket.begun is not None and time.monotonic() - self._asked >= self._quiet
