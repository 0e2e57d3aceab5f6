"""Begin the classes of one process, find them by their codes, and end them in time."""

import threading
import time
from collections.abc import Callable
from functools import cache

from hookviz.capturing.cache import ByteCache
from hookviz.classroom.codes import LENGTH, new_code, read_code, server_of, shown_code
from hookviz.classroom.school_class import SchoolClass
from hookviz.errors import ClassroomError
from hookviz.language.saying import say
from hookviz.machine.memory import MEGABYTE
from hookviz.serving import capacity
from hookviz.serving.rate_limiter import GuessLimiter
from hookviz.settings import settings


class OtherServerError(ClassroomError):
    """The class is at another of several servers, where the link with its code leads."""


class Classes:
    """Registry of the classes of one process. Nothing of a class is kept when it ends."""

    def __init__(
        self,
        most: int,
        *,
        server: int | None = None,
        wrong_codes: GuessLimiter | None = None,
        emptied: Callable[[], object] = lambda: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin without a class.

        Args:
            most: how many there may be at once; 0 for none.
            server: which of several servers this is, from 0; None where it is the only one.
            wrong_codes: how often codes may be guessed, by a session and from an address.
            emptied: called when the last class has ended.
            now: the time in seconds.
        """
        self._most, self._server, self._now = most, server, now
        self._emptied = emptied
        self._wrong_codes = wrong_codes or GuessLimiter(now=now)
        self._lock = threading.Lock()
        self._by_code: dict[str, SchoolClass] = {}
        self._begun: dict[str, tuple[str, str]] = {}  # session and address, by code

    @property
    def are_on(self) -> bool:
        """Whether classes may be begun on this server."""
        return self._most > 0

    def __len__(self) -> int:
        with self._lock:
            return len(self._by_code)

    def begin(self, who: str, address: str) -> SchoolClass:
        """Begin a new class.

        A session has one at a time, and an address half of all that may be: no visitor takes the
        room of all.

        Args:
            who: the session that begins it.
            address: where the session comes from.

        Raises:
            ClassroomError: there are as many as may be, or none may.
        """
        self.sweep()
        with self._lock:
            if not self._most:
                raise ClassroomError(
                    say("Classes are switched off on this server (HOOKVIZ_CLASSES=0).")
                )
            if len(self._by_code) >= self._most:
                raise ClassroomError(
                    say(
                        "{limit} classes are going on here, which is the most at once "
                        "(HOOKVIZ_CLASSES). Try again when one of them has ended.",
                        limit=self._most,
                    )
                )
            refusal = self._refusal(who, address)
            if refusal:
                raise ClassroomError(refusal)
            code = new_code(self._server)
            while code in self._by_code:
                code = new_code(self._server)
            self._begun[code] = who, address
            new_class = self._by_code[code] = SchoolClass(code, now=self._now)
            return new_class

    def _refusal(self, who: str, address: str) -> str:
        """Return why a session at an address may begin no more classes; empty where it may."""
        sessions, addresses = zip(*self._begun.values(), strict=True) if self._begun else ((), ())
        if who in sessions:
            return say("This page has begun a class that goes on still. End it before another one.")
        most = (self._most + 1) // 2
        if addresses.count(address) < most:
            return ""
        return say(
            "{limit} classes of your network are going on here, which is the most for one. "
            "Try again when one of them has ended.",
            limit=most,
        )

    def find(self, typed: str, who: str, address: str = "") -> SchoolClass:
        """Find the class of the code that somebody typed, and count a wrong one.

        Args:
            typed: the code as it was typed.
            who: the session whose wrong codes are counted.
            address: where it comes from, whose sessions are counted together.

        Raises:
            OtherServerError: another server made the code.
            ClassroomError: there is no such class, or too many codes were wrong.
        """
        self.sweep()
        if self._wrong_codes.is_exceeded(who, address):
            raise ClassroomError(say("Too many wrong codes were given here. Try in a minute."))
        code = read_code(typed)
        school_class = self.by_code(code)
        if school_class is not None:
            return school_class
        self._wrong_codes.count(who, address)
        if not code:
            raise ClassroomError(
                say("No class has this code; check each letter.")
                if sum(map(str.isalnum, typed)) == LENGTH  # with a letter that no code has
                else say("A code has six letters and digits, such as K7M P3X. Your teacher has it.")
            )
        if self._server is not None and server_of(code) != self._server:
            raise OtherServerError(
                say("The class {code} is at another server of this site.", code=shown_code(code))
            )
        raise ClassroomError(
            say(
                "No class has the code {code}: check each letter, or it is over.",
                code=shown_code(code),
            )
        )

    def taught(self, code: str, secret: str) -> SchoolClass | None:
        """Return the class of that code to its teacher, who knows the secret, alone."""
        school_class = self.by_code(code)
        is_theirs = school_class is not None and school_class.is_taught_by(secret)
        return school_class if is_theirs else None

    def by_code(self, code: str) -> SchoolClass | None:
        """Return the class of that code, unchecked: whoever joins shows it a token of its own."""
        with self._lock:
            return self._by_code.get(code)

    def end(self, ended: SchoolClass) -> None:
        """End a class, and forget it."""
        with self._lock:
            if self._by_code.get(ended.code) is ended:
                del self._by_code[ended.code], self._begun[ended.code]
            was_last = not self._by_code
        ended.end()
        if was_last:
            self._emptied()

    def leave(self, who: str) -> None:
        """Forget a session that no longer follows, in whatever class it is."""
        for each in self._all():
            each.leave(who)

    def session_ended(self, who: str) -> None:
        """Note that a session has ended, whose page may be loaded again."""
        for each in self._all():
            each.session_ended(who)

    def _all(self) -> list[SchoolClass]:
        with self._lock:
            return list(self._by_code.values())

    def sweep(self) -> None:
        """End the classes whose time has come."""
        with self._lock:
            due = [each for each in self._by_code.values() if each.is_due]
        for each in due:
            self.end(each)


@cache
def classes() -> Classes:
    """Return the classes of this process, as many as ``HOOKVIZ_CLASSES`` says."""
    chosen = settings()
    return Classes(
        chosen.classes,
        server=chosen.server_number,
        emptied=lambda: class_activations().clear(),
    )


@cache
def class_activations() -> ByteCache:
    """Return the cache that the screens of all classes share, as large as one session's.

    It is within what all sessions may keep, and empty when the last class has ended.
    """
    return capacity.activation_budget().cache(settings().session_mb * MEGABYTE)
