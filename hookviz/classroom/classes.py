"""The classes of one process: begun, found by their codes, and ended in time."""

import threading
import time
from collections.abc import Callable
from functools import cache

from hookviz.capturing.cache import ByteCache
from hookviz.classroom.codes import new_code, read_code, server_of, shown_code
from hookviz.classroom.school_class import SchoolClass
from hookviz.classroom.tries import Tries
from hookviz.errors import ClassroomError
from hookviz.language.saying import say
from hookviz.serving import capacity
from hookviz.settings import MEGABYTE, settings


class ElsewhereError(ClassroomError):
    """The class is at another of several servers, where the link with its code leads."""


class Classes:
    """One for the process. Nothing of a class is kept when it ends."""

    def __init__(
        self,
        most: int,
        *,
        server: int | None = None,
        tries: Tries | None = None,
        emptied: Callable[[], object] = lambda: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """No class yet.

        Args:
            most: how many there may be at once; 0 for none.
            server: which of several servers this is, from 0; None where it is the only one.
            tries: how often codes may be guessed.
            emptied: called when the last class has ended.
            now: the time in seconds.
        """
        self._most, self._server, self._now = most, server, now
        self._emptied = emptied
        self._tries = tries or Tries(now=now)
        self._lock = threading.Lock()
        self._by_code: dict[str, SchoolClass] = {}

    @property
    def are_on(self) -> bool:
        """Whether there may be any."""
        return self._most > 0

    def __len__(self) -> int:
        with self._lock:
            return len(self._by_code)

    def begin(self) -> SchoolClass:
        """A new class.

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
            code = new_code(self._server)
            while code in self._by_code:
                code = new_code(self._server)
            begun = self._by_code[code] = SchoolClass(code, now=self._now)
            return begun

    def find(self, typed: str, who: str) -> SchoolClass:
        """The class of the code that somebody typed; wrong ones are counted against `who`.

        Raises:
            ElsewhereError: another server made the code.
            ClassroomError: there is no such class, or too many codes were wrong.
        """
        self.sweep()
        if self._tries.are_too_many(who):
            raise ClassroomError(say("Too many wrong codes were given here. Try in a minute."))
        code = read_code(typed)
        found = self._get(code)
        if found is not None:
            return found
        self._tries.count(who)
        if not code:
            raise ClassroomError(
                say("A code has six letters and digits, such as K7M P3X. Your teacher has it.")
            )
        if self._server is not None and server_of(code) != self._server:
            raise ElsewhereError(
                say("The class {code} is at another server of this site.", code=shown_code(code))
            )
        raise ClassroomError(
            say(
                "There is no class {code} here: it may be over, or the code mistyped.",
                code=shown_code(code),
            )
        )

    def taught(self, code: str, secret: str) -> SchoolClass | None:
        """The class of that code, for its teacher alone."""
        found = self._get(code)
        return found if found is not None and found.is_taught_by(secret) else None

    def known(self, code: str) -> SchoolClass | None:
        """The class of that code, for who comes with a token that it checks itself."""
        return self._get(code)

    def end(self, ended: SchoolClass) -> None:
        """End a class."""
        with self._lock:
            if self._by_code.get(ended.code) is ended:
                del self._by_code[ended.code]
            was_last = not self._by_code
        ended.end()
        if was_last:
            self._emptied()

    def leave(self, who: str) -> None:
        """Forget a session that follows no more, in whatever class it is."""
        for each in self._all():
            each.leave(who)

    def part(self, who: str) -> None:
        """Note that a session is over, whose page may be loaded again."""
        for each in self._all():
            each.part(who)

    def _all(self) -> list[SchoolClass]:
        with self._lock:
            return list(self._by_code.values())

    def sweep(self) -> None:
        """End the classes whose time has come."""
        with self._lock:
            due = [each for each in self._by_code.values() if each.is_due]
        for each in due:
            self.end(each)

    def _get(self, code: str) -> SchoolClass | None:
        with self._lock:
            return self._by_code.get(code)


@cache
def classes() -> Classes:
    """The classes of this process, as many as ``HOOKVIZ_CLASSES`` says."""
    chosen = settings()
    return Classes(
        chosen.classes,
        server=chosen.server_number,
        emptied=lambda: class_activations().clear(),
    )


@cache
def class_activations() -> ByteCache:
    """What the screens of all classes share, as large as one session's cache.

    It is within what all sessions may keep, and empty when the last class has ended.
    """
    return capacity.activation_budget().cache(settings().session_mb * MEGABYTE)
