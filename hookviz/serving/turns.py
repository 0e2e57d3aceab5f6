"""Give a session its turn to compute: its time, how it lets others in, its log and its numbers.

`RunSlot` bounds one run's time, and lets others in while it computes for long. `WatchedRun` is a
turn for somebody who may go away, who is told how far it is.
"""

import secrets
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hookviz.errors import HookVizError
from hookviz.hooking.torch_functions import EveryFunction
from hookviz.language.saying import say
from hookviz.serving import capacity, logs
from hookviz.serving.fair_queue import FairQueue, OnPosition
from hookviz.serving.memory_reservations import MemoryNeed
from hookviz.serving.time_limit import TimeLimit, TooLongError
from hookviz.types import Progress, ignore

YIELD_INTERVAL = 0.25
"""Seconds for which a long run computes before it lets others in."""
Check = Callable[[], None]
"""Called often while something computes; what it raises ends that."""
PATIENCE = 0.3
"""Seconds after which a person wants to know what is waited for."""


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


@dataclass(frozen=True, eq=False, slots=True)
class WatchedRun:
    """Turn whose every progress callback asks first whether anybody waits for it still.

    Attributes:
        slot: the turn.
        check: raises where nobody waits any more.
        report: called with the share done.
        on_position: called with the position in the queue while others are let in.
    """

    slot: RunSlot
    check: Check
    report: Progress
    on_position: OnPosition

    @property
    def limit(self) -> "WatchedLimit":
        """Return when the run has to be over."""
        return WatchedLimit(self.slot.limit, self.check, self.report)

    def yielding(self, progress: Progress = ignore) -> Progress:
        """Return a progress callback that lets others compute meanwhile."""
        watched = _with_check(progress, self.check, self.report)
        return self.slot.yielding(watched, self.on_position)


@dataclass(frozen=True, eq=False, slots=True)
class WatchedLimit:
    """Time limit of a `WatchedRun`."""

    time: TimeLimit
    check: Check
    report: Progress

    def within(self, progress: Progress = ignore) -> Progress:
        """Return `progress` as one that raises once the time is over or nobody waits any more."""
        return self.time.within(_with_check(progress, self.check, self.report))

    @contextmanager
    def over_torch(self) -> Iterator[None]:
        """Have any function of torch raise likewise in the block."""
        with self.time.over_torch(), _CheckedTorch(self.check):
            yield


class _CheckedTorch(EveryFunction):
    """Torch function mode that checks before every call."""

    def __init__(self, check: Check) -> None:
        super().__init__()
        self._check = check

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        self._check()
        return func(*args, **kwargs)


def _with_check(progress: Progress, check: Check, report: Progress) -> Progress:
    def watched(share: float) -> None:
        check()
        report(share)
        progress(share)

    return watched


@contextmanager
def turn(
    session: str,
    label: str,
    kind: str = "capture",
    *,
    owner: Hashable = None,
    need: MemoryNeed | None = None,
    on_position: OnPosition | None = None,
    **fields: str,
) -> Iterator[RunSlot]:
    """Wait for a session's turn, and hold it for the block.

    Yields the turn's `RunSlot`, whose time limit whatever computes takes as its progress callback;
    a run that takes long lets others compute in it.

    To be entered only for what has to be computed: what is kept needs no turn. Within one's own
    turn another one is had at once and is part of the first.

    Args:
        session: whose turn it is, for the log.
        label: what is run, in a person's words.
        kind: what is run, in a word for logs and metrics.
        owner: who has the place in the queue, of which each has one; None for the session.
        need: memory that is reserved for the block, before the wait for a slot.
        on_position: called as by `FairQueue.turn`; what it raises ends the wait.
        fields: more for the log: ``model``, its name in the catalog, and ``layer``.

    Raises:
        OutOfMemoryError: the block needs more memory than there is.
        TooLongError: there was not enough memory for as long as a run may take.
    """
    owner = session if owner is None else owner
    with (
        logs.bound(session=session, request=secrets.token_hex(4), **fields),
        capacity.reservations().hold(label, need, _behind_runs(on_position)),
        capacity.queue().turn(owner, on_position) as waited,
    ):
        slot = RunSlot(capacity.queue(), owner, label)
        with _log_run(kind, slot, waited), capacity.translate_oom(label):
            yield slot


def _behind_runs(on_position: OnPosition | None) -> OnPosition | None:
    """Return what tells a position in the line for memory as one behind those who have theirs."""
    if on_position is None:
        return None
    return lambda position: on_position(position + capacity.queue().waiting)


def says_position(position: int) -> str:
    """Say to a person who waits which place in the queue is theirs."""
    return say("You are number {position} in the queue. This starts by itself.", position=position)


@contextmanager
def _log_run(kind: str, slot: RunSlot, waited: float) -> Iterator[None]:
    """Log and measure a run, however it ends."""
    started = time.perf_counter()
    outcome = "stopped"  # by a click, a closed tab, or a line that was cut
    try:
        yield
        outcome = "done"
    except TooLongError:
        outcome = "too long"
        raise
    except HookVizError:
        outcome = "refused"
        raise
    except Exception:
        outcome = "failed"
        raise
    finally:
        seconds = time.perf_counter() - started - slot.yielded
        waited += slot.yielded
        logs.event(
            kind,
            outcome=outcome,
            ms=round(seconds * 1000, 1),
            waited_ms=round(waited * 1000, 1),
        )
        metrics = capacity.metrics()
        if metrics is not None:
            metrics.run_ended(kind, outcome, seconds, waited)
