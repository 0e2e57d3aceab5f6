"""Watch a turn for somebody who may go away, and tell them how far it is."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hookviz.hooking.torch_functions import EveryFunction
from hookviz.serving.fair_queue import OnPosition
from hookviz.serving.run_slot import RunSlot
from hookviz.serving.time_limit import TimeLimit
from hookviz.types import Progress, ignore

Check = Callable[[], None]
"""Called often while something computes; what it raises ends that."""


class WatchedRun:
    """Turn whose every progress callback asks first whether anybody waits for it still."""

    def __init__(
        self, slot: RunSlot, check: Check, report: Progress, on_position: OnPosition
    ) -> None:
        """Watch a turn.

        Args:
            slot: the turn.
            check: raises where nobody waits any more.
            report: called with the share done.
            on_position: called with the place in the queue while others are let in.
        """
        self._slot, self._check, self._report = slot, check, report
        self._on_position = on_position

    @property
    def limit(self) -> "WatchedLimit":
        """Return when the run has to be over."""
        return WatchedLimit(self._slot.limit, self._check, self._report)

    def yielding(self, progress: Progress = ignore) -> Progress:
        """Return a progress callback that lets others compute meanwhile."""
        watched = _watched(progress, self._check, self._report)
        return self._slot.yielding(watched, self._on_position)


class WatchedLimit:
    """Time limit of a `WatchedRun`."""

    def __init__(self, limit: TimeLimit, check: Check, report: Progress) -> None:
        """Watch a limit, as `WatchedRun` says."""
        self._limit, self._check, self._report = limit, check, report

    def within(self, progress: Progress = ignore) -> Progress:
        """Return `progress` as one that raises once the time is over or nobody waits any more."""
        return self._limit.within(_watched(progress, self._check, self._report))

    @contextmanager
    def over_torch(self) -> Iterator[None]:
        """Have any function of torch raise likewise in the block."""
        with self._limit.over_torch(), _CheckedTorch(self._check):
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


def _watched(progress: Progress, check: Check, report: Progress) -> Progress:
    def watched(share: float) -> None:
        check()
        report(share)
        progress(share)

    return watched
