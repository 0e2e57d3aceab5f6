"""Hold who sits in a class: sessions that joined with their points, and their connections."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

HERE, ALONE_THERE, AWAY = "follows", "alone", "away"
"""What a page says of itself: it shows the teacher's view, its own, or nobody looks at it."""
ATTENTION = (HERE, ALONE_THERE, AWAY)


@dataclass(slots=True)
class Score:
    """Answers that were given to riddles, and how many of them were right."""

    right: int = 0
    answered: int = 0

    @property
    def share(self) -> float | None:
        """Share of the answers that was right; None without any."""
        return self.right / self.answered if self.answered else None

    def count(self, is_right: bool) -> None:
        """Count one more answer."""
        self.answered += 1
        self.right += is_right


@dataclass(eq=False, slots=True)
class Follower:
    """Session that joined, with its points."""

    name: str
    secret: str
    owner: str
    seat: "Seat | None" = None
    score: Score = field(default_factory=Score)


@dataclass(eq=False, slots=True)
class Seat:
    """Connection's place in a class.

    Attributes:
        wake: called, in whatever thread, when its view may have changed.
        follower: who sits there; None for the teacher.
        over: why the connection is over; empty while it is not.
        attention: what its page said last of itself, one of `ATTENTION`.
        beats: how often it has said so.
    """

    wake: Callable[[], None]
    follower: Follower | None = None
    over: str = field(default="")
    attention: str = HERE
    beats: int = 0


def wake(seat: Seat) -> None:
    """Wake a connection, if it is there still."""
    with suppress(RuntimeError):  # its loop has ended, and its connection with it
        seat.wake()
