"""Run one class: what the teacher shows, who follows, and the question that is open.

Connections come and go in threads of their own. Each has a `Seat`, is woken when there may be
something new for it, and asks for its `view`, which is the newest whatever came in between. A
session that joined is a `Follower`, with its points.

`LiveShare` keeps the newest frame of the teacher's live camera, in memory alone, until the next one
comes or the teacher stops. A frame is packed as the answers of a stream are
(`hookviz.live.streams.packed`), and nothing of it is decoded here but its header.
"""

import secrets
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from io import BytesIO
from typing import Any, NamedTuple

from PIL.JpegImagePlugin import JpegImageFile

from hookviz import shallow_json
from hookviz.classroom.link_parameters import SharedState
from hookviz.classroom.question import Poll, Question
from hookviz.errors import ClassroomError
from hookviz.language.saying import say

MAX_FRAME_BYTES = 60_000
"""Most bytes of a frame: forty pupils who get one a second take 2.4 MB a second of the line."""

PRIVATE, SHARED = "private", "shared"
"""What a class is told of a teacher's camera: that there is one, or that it is seen."""

_MOST_FACTS = 2_000  # bytes of the text
_MOST_PICTURES = 2  # what the camera sees, and the tiles
_MOST_PIXELS = 2_000_000  # of each, which a pupil's browser unpacks
_PAUSE = 0.5  # seconds between two frames; the page sends one a second


class LiveFrame(NamedTuple):
    """Frame as it goes to those who follow, and its number."""

    number: int
    data: bytes


class LiveShare:
    """What a class sees of its teacher's camera; for any thread."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Begin without a camera."""
        self._now = now
        self._lock = threading.Lock()
        self._kind: str | None = None
        self._frame: LiveFrame | None = None
        self._count, self._last = 0, float("-inf")

    @property
    def kind(self) -> str | None:
        """`PRIVATE` or `SHARED`; None where the teacher looks at no camera."""
        return self._kind

    @property
    def frame(self) -> LiveFrame | None:
        """Newest frame, where it is shared."""
        return self._frame

    def take(self, told: str | bytes | None) -> bool:
        """Take the kind, or a frame in bytes, and return whether there is something new to see.

        Where the camera is not shared any more nothing of it is kept. A frame that comes too soon
        after another is passed over, and so is one of a camera that is not shared.

        Raises:
            ClassroomError: it is no frame, or too large.
        """
        return self._put(told) if isinstance(told, bytes) else self._tell(told)

    def _tell(self, kind: str | None) -> bool:
        with self._lock:
            known = kind if kind in (PRIVATE, SHARED) else None
            changed, self._kind = known != self._kind, known
            if known != SHARED:
                self._frame = None
            return changed

    def _put(self, data: bytes) -> bool:
        check_frame(data)
        with self._lock:
            now = self._now()
            if self._kind != SHARED or now - self._last < _PAUSE:
                return False
            self._count, self._last = self._count + 1, now
            self._frame = LiveFrame(self._count, data)
            return True


def check_frame(data: bytes) -> None:
    """Check that a frame is what a page makes of it: a short text, and one or two small JPEGs.

    Raises:
        ClassroomError: it is not, or it is too large.
    """
    if len(data) > MAX_FRAME_BYTES:
        raise ClassroomError(
            say(
                "A frame for a class has up to {limit:,} bytes; this one has {count:,}.",
                limit=MAX_FRAME_BYTES,
                count=len(data),
            )
        )
    (length,) = struct.unpack("<I", data[:4].ljust(4, b"\0"))
    blobs = _lengths(data[4 : 4 + length]) if length <= _MOST_FACTS else []
    start, is_whole = 4 + length, bool(blobs)
    for size in blobs:
        is_whole = is_whole and _is_small_jpeg(data[start : start + size])
        start += size
    if not is_whole or start != len(data):
        raise ClassroomError(say("This is no frame that a class can be shown."))


def _lengths(text: bytes) -> list[int]:
    try:
        facts: Any = shallow_json.parse(text)
    except ValueError:
        return []
    blobs = facts.get("blobs") if isinstance(facts, dict) else None
    if not isinstance(blobs, list) or not 1 <= len(blobs) <= _MOST_PICTURES:
        return []
    return blobs if all(type(size) is int and size > 0 for size in blobs) else []


def _is_small_jpeg(data: bytes) -> bool:
    try:
        width, height = JpegImageFile(BytesIO(data)).size
    except Exception:  # noqa: BLE001 - whatever is wrong with it, it is no JPEG
        return False
    return bool(width * height <= _MOST_PIXELS)


HERE, ON_OWN_VIEW, AWAY = "follows", "alone", "away"
"""What a page says of itself: it shows the teacher's view, its own, or nobody looks at it."""
_ATTENTION = (HERE, ON_OWN_VIEW, AWAY)

MOST_FOLLOWERS = 200
MAX_DURATION_S, TEACHER_GONE_S = 4 * 3600.0, 15 * 60.0
"""How long a class lasts at most, and after how long without its teacher it ends."""

ENDED, ELSEWHERE = "ended", "elsewhere"
"""Reasons why a connection is over: with the class, or since the same page has another one."""


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
        attention: what its page said last of itself, one of `_ATTENTION`.
        beats: how often it has said so.
    """

    wake: Callable[[], None]
    follower: Follower | None = None
    over: str = field(default="")
    attention: str = HERE
    beats: int = 0


def _wake(seat: Seat) -> None:
    """Wake a connection, if it is there still."""
    with suppress(RuntimeError):  # its loop has ended, and its connection with it
        seat.wake()


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
        self.live = LiveShare(now)
        self._secret = secrets.token_urlsafe(24)
        self._most, self._now = most, now
        self._lock = threading.Lock()
        self._followers: dict[str, Follower] = {}
        self._teacher: Seat | None = None
        self._state: SharedState | None = None
        self._poll: Poll | None = None
        self._score = Score()
        self._over = False
        self._ends_at, self._alone_since = now() + MAX_DURATION_S, now()

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
                self._teacher is None and now >= self._alone_since + TEACHER_GONE_S
            )

    @property
    def question(self) -> Question | None:
        """Question that is open."""
        with self._lock:
            return self._poll.question if self._poll is not None and self._poll.is_open else None

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
            self._followers[name] = Follower(name, secret, owner)
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
        if self._poll is not None:
            self._poll.forget(*gone)

    def leave(self, owner: str) -> None:
        """Forget a session and its vote."""
        with self._lock:
            gone = [name for name, each in self._followers.items() if each.owner == owner]
            seats = [self._followers.pop(name).seat for name in gone]
            if self._poll is not None:
                self._poll.forget(*gone)
        for seat in filter(None, seats):
            self._end(seat, ELSEWHERE)
        if gone:
            self._wake_teacher()

    def sit(self, token: str, wake: Callable[[], None], before: str = "") -> Seat | None:
        """Seat the teacher by the secret or a follower by a pass; None for any other token.

        It replaces the seat that its owner has already. With the pass from before a page was loaded
        again, `before`, the vote comes along.
        """
        seat, replaced = Seat(wake), list[Seat | None]()
        with self._lock:
            if self._over:
                return None
            if self.is_taught_by(token):
                replaced.append(self._teacher)
                self._teacher = seat
            else:
                follower = self._follower_of(token)
                if follower is None:
                    return None
                earlier = self._follower_of(before)
                if earlier is not None and earlier is not follower:
                    follower.score = earlier.score
                    if self._poll is not None:
                        self._poll.move(earlier.name, follower.name)
                    replaced.append(earlier.seat)  # where it is open still, it is a copy of the tab
                    del self._followers[earlier.name]
                replaced.append(follower.seat)
                seat.follower, follower.seat = follower, seat
        for gone in filter(None, replaced):
            self._end(gone, ELSEWHERE)
        # A teacher's page tells of its camera each time that it comes: the one before may be gone.
        if seat.follower is None and self.live.take(None):
            self._wake_followers()
        self._wake_teacher()
        return seat

    def _follower_of(self, token: str) -> Follower | None:
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
        if self._teacher is None and self.live.take(None):
            self._wake_followers()
        self._wake_teacher()

    def view(self, seat: Seat) -> dict[str, Any]:
        """Return what can be seen from a seat, by what it is about."""
        with self._lock:
            poll, state, follower = self._poll, self._state, seat.follower
            view: dict[str, Any] = {"over": seat.over, "beat": seat.beats}
            if follower is None:
                seats = [each.seat for each in self._followers.values() if each.seat is not None]
                view["followers"] = sum(each.attention == HERE for each in seats)
                view["alone"] = sum(each.attention == ON_OWN_VIEW for each in seats)
            else:
                view["state"] = None if state is None else asdict(state)
                view["points"] = asdict(follower.score)
            view["class"] = self._score.share
            view["question"] = None
            if poll is not None:
                theirs = poll.view_of_teacher() if follower is None else poll.view_of(follower.name)
                view["question"] = theirs
            view["pictures"] = None if poll is None else poll.pictures()
            return view

    def attend(self, seat: Seat, attention: str) -> None:
        """Note what a page says of itself, and answer it, so that both know of the line."""
        if attention not in _ATTENTION:
            return
        changed, seat.attention = seat.attention != attention, attention
        seat.beats += 1
        _wake(seat)
        if changed:
            self._wake_teacher()

    def publish(self, seat: Seat, state: SharedState) -> None:
        """Show this to all who follow; ignored from any seat but the teacher's."""
        with self._lock:
            if seat is not self._teacher or state == self._state:
                return
            self._state = state
        self._wake_followers()

    def show_live(self, seat: Seat, told: str | bytes | None) -> None:
        """Show who follows what `told` says of the teacher's camera, see `LiveShare.take`.

        Ignored from any seat but the teacher's.
        """
        if seat is self._teacher and self.live.take(told):
            self._wake_followers()

    def ask(self, question: Question, *, is_first: bool = False) -> None:
        """Ask all who follow; the question before is gone.

        Args:
            question: what is asked.
            is_first: whether a game begins with it, in which nobody has points yet.
        """
        with self._lock:
            if self._over:
                return
            self._poll = Poll(question)
            if is_first:
                self._score = Score()
                for follower in self._followers.values():
                    follower.score = Score()
        self._wake_followers()
        self._wake_teacher()

    def close(self, seat: Seat, number: int) -> None:
        """Close the question of that number; ignored from any seat but the teacher's."""
        self._lead(seat, number, Poll.close)

    def mark(self, seat: Seat, number: int, text: str) -> None:
        """Count an answer that was written as right, or no longer; of the teacher alone."""
        self._lead(seat, number, lambda poll: poll.mark(text))

    def reveal(self, seat: Seat, number: int) -> None:
        """Show all screens the right answer of a closed question; of the teacher alone."""
        self._lead(seat, number, self._reveal)

    def put_away(self, seat: Seat, number: int) -> None:
        """Take the question of that number off all screens; of the teacher alone."""
        self._lead(seat, number, self._put_away)

    def _lead(self, seat: Seat, number: int, step: Callable[[Poll], None]) -> None:
        """Do this with the question of that number where its teacher's seat asks for it."""
        with self._lock:
            poll = self._poll if seat is self._teacher else None
            if poll is None or poll.question.number != number:
                return
            step(poll)
        self._wake_followers()
        self._wake_teacher()

    def _reveal(self, poll: Poll) -> None:
        for name, is_right in poll.reveal().items():
            self._score.count(is_right)
            if name in self._followers:
                self._followers[name].score.count(is_right)

    def _put_away(self, _poll: Poll) -> None:
        self._poll = None

    def vote(self, seat: Seat, number: int, answer: int | str) -> None:
        """Answer the open question, instead of the answer before.

        Nothing happens where that question is not open, or has no such answer.
        """
        with self._lock:
            poll, follower = self._poll, seat.follower
            if poll is None or follower is None or follower.seat is not seat:
                return
            if poll.question.number != number or not poll.vote(follower.name, answer):
                return
        seat.wake()
        self._wake_teacher()

    def end(self) -> None:
        """Tell all that it is over, and forget everything."""
        with self._lock:
            seats = [each.seat for each in self._followers.values()]
            seats.append(self._teacher)
            self._over = True
            self._followers, self._teacher = {}, None
            self._state = self._poll = None
            self.live.take(None)
        for seat in filter(None, seats):
            self._end(seat, ENDED)

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
