"""Bound one run's time, and let others in while it computes for long."""

import time
from collections.abc import Hashable

from hookviz.serving.fair_queue import FairQueue, OnPosition
from hookviz.serving.time_limit import TimeLimit
from hookviz.types import Progress, ignore

YIELD_INTERVAL = 0.25
"""Seconds for which a long run computes before it lets others in."""


class RunSlot:
    """Turn in the queue that a run has now: its time limit, and how it yields.

    Attributes:
        limit: when the run has to be over; the time in which others were let in does not count.
        yielded: seconds of that so far.
    """

    def __init__(self, queue: FairQueue, owner: Hashable, label: str) -> None:
        """Begin the time limit now.

        Args:
            queue: the queue that the turn is of.
            owner: whose it is.
            label: what is run, in a person's words.
        """
        self.limit = TimeLimit.from_now(label)
        self.yielded = 0.0
        self._queue, self._owner = queue, owner
        self._since = time.monotonic()

    def yielding(
        self,
        progress: Progress = ignore,
        on_position: OnPosition | None = None,
        *,
        interval: float = YIELD_INTERVAL,
    ) -> Progress:
        """Return a progress callback that lets others in once this run has computed for long.

        What is borrowed for the run, such as a replica, stays its own meanwhile.

        Args:
            progress: called with the share done.
            on_position: called with the position in the queue while others compute, as by
                `FairQueue.turn`.
            interval: seconds for which it computes without a pause.

        Raises:
            TooLongError: from the callback, once the time is over.
        """

        def checked(share: float) -> None:
            self.limit.check()
            progress(share)
            if share >= 1 or time.monotonic() - self._since < interval:
                return
            waited = self._queue.yield_turn(self._owner, on_position)
            if waited:
                self.yielded += waited
                self.limit = self.limit.later(waited)
                self._since = time.monotonic()

        return checked
