"""How long one run may take where many share a machine: ``HOOKVIZ_RUN_SECONDS``."""

import time
from dataclasses import dataclass

from hookviz.errors import HookVizError
from hookviz.settings import settings
from hookviz.types import Progress, ignore


class TooLongError(HookVizError):
    """A run took more time than whoever started the server allows."""


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """When a run has to be over, checked whenever it tells how far it is.

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
        """The limit of a run that begins at this moment, by this process's settings."""
        seconds = settings().run_seconds
        return cls(label, seconds, time.monotonic() + seconds)

    def within(self, progress: Progress = ignore) -> Progress:
        """`progress`, which raises once the time is over.

        Raises:
            TooLongError: from the callback.
        """

        def checked(share: float) -> None:
            if time.monotonic() > self.deadline:
                raise TooLongError(
                    f"{self.label} took longer than the {self.seconds} seconds that one run may "
                    "take here (HOOKVIZ_RUN_SECONDS). A smaller input, model or number of steps "
                    "takes less."
                )
            progress(share)

        return checked
