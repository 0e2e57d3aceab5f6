"""One class: what the teacher shows, who follows, and the question that is open.

Connections come and go in threads of their own. Each has a `Seat`, is woken when there may be
something new for it, and asks for its `view`, which is the newest whatever came in between.
"""

import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hookviz.classroom.question import Question, tally
from hookviz.classroom.shared_state import SharedState
from hookviz.errors import ClassroomError
from hookviz.language.saying import say

MOST_FOLLOWERS = 200
LASTS, ALONE = 4 * 3600.0, 15 * 60.0
"""Seconds after which a class ends, and after which it does where its teacher is gone."""

ENDED, ELSEWHERE = "ended", "elsewhere"
"""Why a connection is over: with the class, or since the same page has another one."""


@dataclass(eq=False, slots=True)
class _Follower:
    """One session that joined; what it chose goes with it."""

    secret: str
    owner: str
    seat: "Seat | None" = None
    vote: int | None = None


@dataclass(eq=False, slots=True)
class Seat:
    """A connection's place in a class.

    Attributes:
        wake: called, in whatever thread, when its view may have changed.
        follower: who sits there; None for the teacher.
        over: why it is over; empty while it is not.
    """

    wake: Callable[[], None]
    follower: _Follower | None = None
    over: str = field(default="")


class SchoolClass:
    """Bounded in followers and time; whoever holds it may be in any thread."""

    def __init__(
        self,
        code: str,
        *,
        most: int = MOST_FOLLOWERS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nobody follows yet."""
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
        """Whether this is the teacher's secret."""
        return _are_same(secret, self._secret)

    def secret_for_the_teacher(self) -> str:
        """What the teacher's browser keeps, and nobody else is told."""
        return self._secret

    @property
    def is_over(self) -> bool:
        """Whether it ended."""
        return self._over

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
        """The one that is open."""
        with self._lock:
            return self._question

    def admit(self, owner: str) -> str:
        """The pass of a session that knows the code, the same one each time.

        Raises:
            ClassroomError: as many follow as may.
        """
        with self._lock:
            for name, each in self._followers.items():
                if each.owner == owner:
                    return f"{name}.{each.secret}"
            self._drop_absent()
            if len(self._followers) >= self._most:
                raise ClassroomError(
                    say("{limit} follow this class, which is the most.", limit=self._most)
                )
            name, secret = secrets.token_hex(8), secrets.token_urlsafe(24)
            self._followers[name] = _Follower(secret, owner)
            return f"{name}.{secret}"

    def part(self, owner: str) -> None:
        """Keep the pass and the vote of a session that is over, for a page that is loaded again."""
        with self._lock:
            for each in self._followers.values():
                if each.owner == owner:
                    each.owner = ""

    def _drop_absent(self) -> None:
        """Make room where it is full: of those whose sessions and connections are over."""
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
        """A seat for the teacher's secret or a follower's pass; None for any other token.

        Whoever has a seat already gets this one for it. With the pass of `before` a page was loaded
        again its vote comes along.
        """
        seat = Seat(wake)
        with self._lock:
            if self._over:
                return None
            if self.is_taught_by(token):
                replaced, self._teacher = self._teacher, seat
            else:
                follower = self._known(token)
                if follower is None:
                    return None
                left = self._known(before)
                if left is not None and left is not follower:
                    follower.vote = left.vote if follower.vote is None else follower.vote
                    del self._followers[before.partition(".")[0]]
                seat.follower = follower
                replaced, follower.seat = follower.seat, seat
        if replaced is not None:
            self._end(replaced, ELSEWHERE)
        self._wake_teacher()
        return seat

    def _known(self, token: str) -> _Follower | None:
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
        """What there is to see from a seat, by what it is about."""
        with self._lock:
            asked = self._question
            question: dict[str, Any] | None = None
            if asked is not None:
                question = {
                    "number": asked.number, "words": asked.words, "answers": asked.answers
                }  # fmt: skip
            view: dict[str, Any] = {"over": seat.over}
            if seat.follower is None:
                here = [each for each in self._followers.values() if each.seat is not None]
                view["followers"] = len(here)
                if question is not None and asked is not None:
                    votes = (each.vote for each in self._followers.values())
                    question["tally"] = tally(asked, votes)
            else:
                if question is not None:
                    question["mine"] = seat.follower.vote
                state = self._state
                view["state"] = state and {"query": state.query, "sample": state.sample}
            view["question"] = question
            return view

    def publish(self, seat: Seat, state: SharedState) -> None:
        """Show this to all who follow, where it comes from the teacher's seat."""
        with self._lock:
            if seat is not self._teacher or state == self._state:
                return
            self._state = state
        self._wake_followers()

    def ask(self, question: Question) -> None:
        """Ask all who follow; the question before is closed."""
        self._put(question)

    def close(self, seat: Seat, number: int) -> None:
        """Close the question of that number, where the teacher's seat does it."""
        asked = self.question
        if seat is self._teacher and asked is not None and asked.number == number:
            self._put(None)

    def vote(self, seat: Seat, number: int, answer: int) -> None:
        """Choose an answer of the open question, in place of the one before.

        Nothing happens where that question is not open, or has no such answer.
        """
        with self._lock:
            asked, follower = self._question, seat.follower
            if asked is None or follower is None or follower.seat is not seat:
                return
            if asked.number != number or not 0 <= answer < len(asked.answers):
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


def _are_same(given: str, secret: str) -> bool:
    """Whether it is the secret, in a time that does not tell how much of it is right."""
    return secrets.compare_digest(given.encode(errors="replace"), secret.encode())


def _wake(seat: Seat) -> None:
    with suppress(RuntimeError):  # its loop has ended, and its connection with it
        seat.wake()
