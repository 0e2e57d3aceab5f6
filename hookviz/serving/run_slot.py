"""A turn that is held: how long its run may take, and how it gives way to those who wait."""

import time
from collections.abc import Hashable

from hookviz.serving.fair_queue import FairQueue, Tell
from hookviz.serving.time_limit import TimeLimit
from hookviz.types import Progress, ignore

GIVES_WAY = 0.25
"""Seconds for which a long run computes before it lets others in."""


class RunSlot:
    """One's turn in the queue, from when it was had.

    Attributes:
        limit: when the run has to be over; the time in which others were let in does not count.
        away: seconds of that so far.
    """

    def __init__(self, queue: FairQueue, who: Hashable, label: str) -> None:
        """The turn that `who` has now.

        Args:
            queue: the queue that it is of.
            who: whose it is.
            label: what is run, in a person's words.
        """
        self.limit = TimeLimit.from_now(label)
        self.away = 0.0
        self._queue, self._who = queue, who
        self._since = time.monotonic()

    def giving_way(
        self, progress: Progress = ignore, tell: Tell | None = None, *, every: float = GIVES_WAY
    ) -> Progress:
        """`progress`, in which others are let in where this run has gone on for `every` seconds.

        What is borrowed for the run, such as a replica, stays its own meanwhile.

        Args:
            progress: told the share done.
            tell: told the place in the queue while others compute, as by `FairQueue.turn`.
            every: seconds for which it computes without a pause.

        Raises:
            TooLongError: from the callback, once the time is over.
        """

        def checked(share: float) -> None:
            self.limit.check()
            progress(share)
            if share >= 1 or time.monotonic() - self._since < every:
                return
            waited = self._queue.give_way(self._who, tell)
            if waited:
                self.away += waited
                self.limit = self.limit.later(waited)
                self._since = time.monotonic()

        return checked
