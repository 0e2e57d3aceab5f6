"""Queue runs fairly, and let a bounded number of them compute at once.

Only who is next is woken when a slot gets free. All others look at the clock: with 300 who wait,
waking each of them at every change, to say a new position, took more than the runs themselves.
"""

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

OnPosition = Callable[[int], None]
"""Called with one's position in the queue, 1 for the next; what it raises leaves the queue."""

_TICK = 0.4  # seconds between two calls of `OnPosition` to somebody who waits
_GRACE = 2.0  # seconds for which the position of somebody who left is held
_PROMOTE_AFTER = 5.0  # seconds after which a run that yielded is queued among the people again
_QUIET = 2.0  # seconds without a request, after which no slot is kept free for people


@dataclass(eq=False, slots=True)
class _Ticket:
    """Place of one owner in the queue.

    Attributes:
        is_next: notified when it may have come to be the first, under the queue's lock.
        background: whether all others go first.
        yielded_at: since when a run waits that yielded its turn; None for a new one.
        left_at: when its owner left the queue; None while they wait.
    """

    is_next: threading.Condition
    background: bool = False
    yielded_at: float | None = None
    left_at: float | None = None


class FairQueue:
    """First-come, first-served queue with `runs` slots, background runs and yielding.

    An owner, such as a session, has one ticket from the request until the run is over: a second run
    of the same owner queues only after the first, so nobody has two places. Who leaves is dropped
    at once, and gets the old position back by asking again within two seconds: Streamlit ends and
    repeats a page's run at every click, which should not send anybody back to the end.

    What goes on by itself, such as a stream of frames, asks for background turns: all people who
    wait for an answer go first, and one slot of several is always kept free of it.

    A long run yields at intervals: it leaves its turn to those who wait and resumes in the
    background. Those who explore go first, those who yielded take turns. After five seconds in the
    background it is queued among the people again: a crowd that never pauses slows a long run down
    and can't stop it. Where nobody has asked for two seconds, no slot is kept free of such runs.
    """

    def __init__(
        self,
        runs: int,
        grace: float = _GRACE,
        *,
        promote_after: float = _PROMOTE_AFTER,
        quiet: float = _QUIET,
    ) -> None:
        """Start empty.

        Args:
            runs: how many compute at once.
            grace: seconds for which the position of somebody who left is held.
            promote_after: seconds in the background after which a run that yielded is queued among
                the people again.
            quiet: seconds without a request, after which runs that yielded may have all slots.
        """
        self.runs = runs
        self._grace, self._promote_after, self._quiet = grace, promote_after, quiet
        self._asked_at = -quiet  # when a person asked last
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)  # for who has no ticket of their own yet
        self._queue: dict[Hashable, _Ticket] = {}  # in the order of arrival
        self._running: dict[Hashable, int] = {}  # the thread of each owner's run
        self._background: set[Hashable] = set()  # owners of them whose turn is a background one

    @property
    def running(self) -> int:
        """Number of runs that compute now."""
        with self._lock:
            return len(self._running)

    @property
    def waiting(self) -> int:
        """Number of people who wait now, without background runs."""
        with self._lock:
            return sum(not ticket.background for ticket in self._refresh_waiting())

    @contextmanager
    def turn(
        self, owner: Hashable, on_position: OnPosition | None = None, *, background: bool = False
    ) -> Iterator[float]:
        """Wait for a turn and hold it for the block; yields the seconds waited.

        Within a turn, another one of the same owner starts at once, in the same thread.

        Args:
            owner: who asks, such as a session.
            on_position: called in this thread with one's position, about twice a second.
            background: let all go first who do not ask for this; those who do take turns.
        """
        if self._running.get(owner) == threading.get_ident():
            yield 0.0
            return
        waited = self._wait(owner, on_position, self._ticket(background=background))
        try:
            yield waited
        finally:
            with self._lock:
                # A run that was ended while it had yielded has no turn any more, and the same
                # owner's next run may have one.
                if self._running.get(owner) == threading.get_ident():
                    self._leave(owner)

    def yield_turn(self, owner: Hashable, on_position: OnPosition | None = None) -> float:
        """Let in who waits, wait behind them, and return the seconds waited; 0 for nobody let in.

        To be called within one's own turn, which is the same turn afterwards. What `on_position`
        raises ends it: the turn's block ends without a turn then.

        Args:
            owner: whose turn it is.
            on_position: as in `turn`.
        """
        with self._lock:
            if self._running.get(owner) != threading.get_ident() or not self._can_yield(owner):
                return 0.0
            self._leave(owner)
            ticket = self._queue[owner] = self._ticket(background=True)
            ticket.yielded_at = time.monotonic()
        return self._wait(owner, on_position, ticket)

    def _wait(self, owner: Hashable, on_position: OnPosition | None, wanted: _Ticket) -> float:
        started = time.monotonic()
        # One who yields has a ticket from the same moment on, so that nobody is in between.
        ticket = wanted if wanted.yielded_at is not None else None
        next_report = 0.0
        try:
            while True:
                with self._lock:
                    ticket = ticket or self._enqueue(owner, wanted)
                    waiting = self._refresh_waiting()
                    if ticket is not None and self._is_next_and_fits(ticket, waiting):
                        self._running[owner] = threading.get_ident()
                        if ticket.background and not self._may_use_reserved_slot(ticket):
                            self._background.add(owner)
                        del self._queue[owner]
                        self._wake()  # there may be room for the next too
                        return time.monotonic() - started
                    left = next_report - time.monotonic()
                    if left > 0:
                        (self._changed if ticket is None else ticket.is_next).wait(left)
                        continue
                    position = len(waiting) + 1 if ticket is None else waiting.index(ticket) + 1
                next_report = time.monotonic() + _TICK
                if on_position is not None:
                    on_position(position)  # without the lock: it may take its time
        except BaseException:
            with self._lock:
                if ticket is not None:
                    ticket.left_at = time.monotonic()
                    self._wake()
            raise

    def _ticket(self, *, background: bool) -> _Ticket:
        return _Ticket(threading.Condition(self._lock), background)

    # All below are called with the lock held.

    def _wake(self) -> None:
        """Wake who may run now, and those whose owner may have no ticket any more."""
        for first in self._refresh_waiting()[:1]:
            first.is_next.notify_all()
        self._changed.notify_all()

    def _leave(self, owner: Hashable) -> None:
        del self._running[owner]
        self._background.discard(owner)
        self._wake()

    def _enqueue(self, owner: Hashable, wanted: _Ticket) -> _Ticket | None:
        """Return a ticket at the end, or the one just left; None while the owner has another."""
        if not wanted.background:
            self._asked_at = time.monotonic()
        self._refresh_waiting()
        ticket = self._queue.get(owner)
        if ticket is not None and ticket.left_at is not None:
            if ticket.yielded_at is None and ticket.background == wanted.background:
                ticket.left_at = None
                self._wake()  # those behind it moved back
                return ticket
            del self._queue[owner]  # of another kind: the run that had yielded is over
            ticket = None
        if ticket is None and owner not in self._running:
            self._queue[owner] = wanted
            return wanted
        return None

    def _refresh_waiting(self) -> list[_Ticket]:
        """Return the tickets that wait, people's first; those left too long ago are dropped."""
        now = time.monotonic()
        for owner, ticket in list(self._queue.items()):
            if ticket.left_at is not None and now - ticket.left_at >= self._grace:
                del self._queue[owner]
            elif ticket.yielded_at is not None and now - ticket.yielded_at >= self._promote_after:
                ticket.background = False
        present = [ticket for ticket in self._queue.values() if ticket.left_at is None]
        return sorted(present, key=lambda ticket: ticket.background)

    def _is_next_and_fits(self, ticket: _Ticket, waiting: list[_Ticket]) -> bool:
        if len(self._running) >= self.runs or waiting[0] is not ticket:
            return False
        return self._has_slot_for(ticket, len(self._background))

    def _can_yield(self, owner: Hashable) -> bool:
        """Return whether somebody could run in place of `owner`."""
        first = next(iter(self._refresh_waiting()), None)
        if first is None or not self._has_slot_for(first, len(self._background - {owner})):
            return False
        has_free_slot = len(self._running) < self.runs
        return not (has_free_slot and self._has_slot_for(first, len(self._background)))

    def _has_slot_for(self, ticket: _Ticket, running_in_background: int) -> bool:
        if not ticket.background or self._may_use_reserved_slot(ticket):
            return True
        return running_in_background < max(1, self.runs - 1)

    def _may_use_reserved_slot(self, ticket: _Ticket) -> bool:
        """Return whether no slot has to be kept free of a run that yielded."""
        return ticket.yielded_at is not None and time.monotonic() - self._asked_at >= self._quiet
