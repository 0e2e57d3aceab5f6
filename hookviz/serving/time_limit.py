"""End a run that takes longer than one may where many share a machine: ``HOOKVIZ_RUN_SECONDS``."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from hookviz.errors import HookVizError
from hookviz.hooking.torch_functions import EveryFunction
from hookviz.language.saying import say
from hookviz.settings import settings
from hookviz.types import Progress, ignore


class TooLongError(HookVizError):
    """Raised where a run takes more time than whoever started the server allows."""


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """Deadline of a run, checked whenever it tells how far it is.

    Attributes:
        label: what is run, in a person's words.
        seconds: how long it may take.
        deadline: when that is over, on the monotonic clock.
    """

    label: str
    seconds: int
    deadline: float

    @classmethod
    def from_now(cls, label: str) -> "TimeLimit":
        """Return the limit of a run that begins now, by this process's settings."""
        seconds = settings().run_seconds
        return cls(label, seconds, time.monotonic() + seconds)

    def later(self, seconds: float) -> "TimeLimit":
        """Return the limit put off by `seconds` of waiting, which does not count."""
        return replace(self, deadline=self.deadline + seconds)

    def within(self, progress: Progress = ignore) -> Progress:
        """Return `progress` as one that raises once the time is over.

        Raises:
            TooLongError: from the callback.
        """

        def checked(share: float) -> None:
            self.check()
            progress(share)

        return checked

    def check(self) -> None:
        """Raise once the time is over.

        Raises:
            TooLongError: it is over.
        """
        if time.monotonic() > self.deadline:
            raise self._error()

    @contextmanager
    def over_torch(self) -> Iterator[None]:
        """End the block at the first torch function that it calls once the time is over.

        For work that tells no progress, such as loading a network.

        Raises:
            TooLongError: from the block.
        """
        try:
            with _DeadlineCheck(self.deadline):
                yield
        except _DeadlinePassed:
            raise self._error() from None

    def _error(self) -> TooLongError:
        return TooLongError(
            say(
                "{label} took longer than the {seconds} seconds that one run may take here "
                "(HOOKVIZ_RUN_SECONDS). A smaller input, model or number of steps takes less.",
                label=self.label,
                seconds=self.seconds,
            )
        )


class _DeadlinePassed(BaseException):
    """Raised inside torch; no ``except Exception`` on its way takes it for a broken file."""


class _DeadlineCheck(EveryFunction):
    """Torch function mode that compares the clock with a deadline before every call."""

    def __init__(self, deadline: float) -> None:
        super().__init__()
        self._deadline = deadline

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call `func`, if there is time.

        Raises:
            _DeadlinePassed: there is none.
        """
        if time.monotonic() > self._deadline:
            raise _DeadlinePassed
        return func(*args, **kwargs)
