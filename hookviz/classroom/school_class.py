"""Run one class: what the teacher shows, who follows, and the question that is open.

Connections come and go in threads of their own. Each has a `Seat`, is woken when there may be
something new for it, and asks for its `view`, which is the newest whatever came in between.
"""

import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from hookviz.classroom.question import Question, tally
from hookviz.classroom.shared_state import SharedState
from hookviz.errors import ClassroomError
from hookviz.language.saying import say

MOST_FOLLOWERS = 200
LASTS, ALONE = 4 * 3600.0, 15 * 60.0
"""Seconds after which a class ends, and after which it does where its teacher is gone."""

ENDED, ELSEWHERE = "ended", "elsewhere"
"""Reasons why a connection is over: with the class, or since the same page has another one."""


@dataclass(eq=False, slots=True)
class _Follower:
    """Session that joined, with its vote."""

    secret: str
    owner: str
    seat: "Seat | None" = None
    vote: int | None = None


@dataclass(eq=False, slots=True)
class Seat:
    """Connection's place in a class.

    Attributes:
        wake: called, in whatever thread, when its view may have changed.
        follower: who sits there; None for the teacher.
        over: why the connection is over; empty while it is not.
    """

    wake: Callable[[], None]
    follower: _Follower | None = None
    over: str = field(default="")


class SchoolClass:
    """Class of one teacher and those who follow, bounded in number and time; for any thread."""

    def __init__(
        self,
        code: str,
        *,
        most: int = MOST_FOLLOWERS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with nobody who follows."""
        self.code = code
        self._secret = secrets.token_urlsafe(24)
        self._most, self._now = most, now
        self._lock = threading.Lock()
        self._followers: dict[str, _Follower] = {}
        self._teacher: Seat | None = None
        self._state: SharedState | None = None
        self._question: Question | None = None
        self._over = False
        self._ends_at, self._alone_since = now() + LASTS, now()

    def is_taught_by(self, secret: str) -> bool:
        """Return whether this is the teacher's secret."""
        return _are_same(secret, self._secret)

    def secret_for_the_teacher(self) -> str:
        """Return the secret for the teacher's browser alone: whoever has it teaches the class."""
        return self._secret

    @property
    def is_due(self) -> bool:
        """Whether its time has come, or its teacher has been gone for too long."""
        with self._lock:
            now = self._now()
            return now >= self._ends_at or (
                self._teacher is None and now >= self._alone_since + ALONE
            )

    @property
    def question(self) -> Question | None:
        """Question that is open."""
        with self._lock:
            return self._question

    def admit(self, owner: str) -> str:
        """Give a session that knows the code its pass, the same one each time.

        Raises:
            ClassroomError: as many follow as may.
        """
        with self._lock:
            for name, follower in self._followers.items():
                if follower.owner == owner:
                    return f"{name}.{follower.secret}"
            self._drop_absent()
            if len(self._followers) >= self._most:
                raise ClassroomError(
                    say("{limit} follow this class, which is the most.", limit=self._most)
                )
            name, secret = secrets.token_hex(8), secrets.token_urlsafe(24)
            self._followers[name] = _Follower(secret, owner)
            return f"{name}.{secret}"

    def session_ended(self, owner: str) -> None:
        """Keep the pass and the vote of a session that has ended: its page may be loaded again."""
        with self._lock:
            for follower in self._followers.values():
                if follower.owner == owner:
                    follower.owner = ""

    def _drop_absent(self) -> None:
        """Make room in a full class: drop followers whose sessions and connections are over."""
        if len(self._followers) < self._most:
            return
        gone = [n for n, each in self._followers.items() if not each.owner and each.seat is None]
        for name in gone:
            del self._followers[name]

    def leave(self, owner: str) -> None:
        """Forget a session and its vote."""
        with self._lock:
            gone = [name for name, each in self._followers.items() if each.owner == owner]
            seats = [self._followers.pop(name).seat for name in gone]
        for seat in filter(None, seats):
            self._end(seat, ELSEWHERE)
        if gone:
            self._wake_teacher()

    def sit(self, token: str, wake: Callable[[], None], before: str = "") -> Seat | None:
        """Seat the teacher by the secret or a follower by a pass; None for any other token.

        It replaces the seat that its owner has already. With the pass from before a page was loaded
        again, `before`, the vote comes along.
        """
        seat = Seat(wake)
        with self._lock:
            if self._over:
                return None
            if self.is_taught_by(token):
                replaced, self._teacher = self._teacher, seat
            else:
                follower = self._follower_of(token)
                if follower is None:
                    return None
                earlier = self._follower_of(before)
                if earlier is not None and earlier is not follower:
                    follower.vote = earlier.vote if follower.vote is None else follower.vote
                    del self._followers[before.partition(".")[0]]
                seat.follower = follower
                replaced, follower.seat = follower.seat, seat
        if replaced is not None:
            self._end(replaced, ELSEWHERE)
        self._wake_teacher()
        return seat

    def _follower_of(self, token: str) -> _Follower | None:
        name, _, secret = token.partition(".")
        follower = self._followers.get(name)
        return follower if follower is not None and _are_same(secret, follower.secret) else None

    def rise(self, seat: Seat) -> None:
        """Let go of the seat of a connection that is over."""
        with self._lock:
            if seat is self._teacher:
                self._teacher, self._alone_since = None, self._now()
            elif seat.follower is not None and seat.follower.seat is seat:
                seat.follower.seat = None
        self._wake_teacher()

    def view(self, seat: Seat) -> dict[str, Any]:
        """Return what can be seen from a seat, by what it is about."""
        with self._lock:
            question, state = self._question, self._state
            shown: dict[str, Any] | None = None if question is None else asdict(question)
            view: dict[str, Any] = {"over": seat.over}
            if seat.follower is None:
                followers = list(self._followers.values())
                view["followers"] = sum(follower.seat is not None for follower in followers)
                if question is not None and shown is not None:
                    shown["tally"] = tally(question, (follower.vote for follower in followers))
            else:
                if shown is not None:
                    shown["mine"] = seat.follower.vote
                view["state"] = None if state is None else asdict(state)
            view["question"] = shown
            return view

    def publish(self, seat: Seat, state: SharedState) -> None:
        """Show this to all who follow; ignored from any seat but the teacher's."""
        with self._lock:
            if seat is not self._teacher or state == self._state:
                return
            self._state = state
        self._wake_followers()

    def ask(self, question: Question) -> None:
        """Ask all who follow; the question before is closed."""
        self._put(question)

    def close(self, seat: Seat, number: int) -> None:
        """Close the question of that number; ignored from any seat but the teacher's."""
        question = self.question
        if seat is self._teacher and question is not None and question.number == number:
            self._put(None)

    def vote(self, seat: Seat, number: int, answer: int) -> None:
        """Choose an answer of the open question, instead of the one before.

        Nothing happens where that question is not open, or has no such answer.
        """
        with self._lock:
            question, follower = self._question, seat.follower
            if question is None or follower is None or follower.seat is not seat:
                return
            if question.number != number or not 0 <= answer < len(question.answers):
                return
            follower.vote = answer
        seat.wake()
        self._wake_teacher()

    def end(self) -> None:
        """Tell all that it is over, and forget everything."""
        with self._lock:
            seats = [each.seat for each in self._followers.values()]
            seats.append(self._teacher)
            self._over = True
            self._followers, self._teacher = {}, None
            self._state = self._question = None
        for seat in filter(None, seats):
            self._end(seat, ENDED)

    def _put(self, question: Question | None) -> None:
        with self._lock:
            if self._over:
                return
            self._question = question
            for each in self._followers.values():
                each.vote = None
        self._wake_followers()
        self._wake_teacher()

    def _wake_followers(self) -> None:
        with self._lock:
            seats = [each.seat for each in self._followers.values()]
        for seat in filter(None, seats):
            _wake(seat)

    def _wake_teacher(self) -> None:
        seat = self._teacher
        if seat is not None:
            _wake(seat)

    @staticmethod
    def _end(seat: Seat, why: str) -> None:
        seat.over = why
        _wake(seat)


def _are_same(guess: str, secret: str) -> bool:
    """Compare in constant time, so that nobody learns how much of a guess is right."""
    return secrets.compare_digest(guess.encode(errors="replace"), secret.encode())


def _wake(seat: Seat) -> None:
    with suppress(RuntimeError):  # its loop has ended, and its connection with it
        seat.wake()
