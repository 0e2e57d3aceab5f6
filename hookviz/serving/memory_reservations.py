"""Reserve memory before a pass or a loading begins, so that no two count on the same bytes.

1. Whoever needs memory waits in line, without a slot in the queue of runs.
2. The first in line goes on once its bytes are free beside all that others hold; what is kept
   gives way for it. A byte that its holder has taken already counts twice, on the safe side.
3. Where nobody holds anything it may use the reserve too. What does not fit then never will, and
   is refused.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.machine.memory import MEGABYTE, Memory
from hookviz.serving.fair_queue import OnPosition
from hookviz.serving.time_limit import TimeLimit
from hookviz.wording import memory_size

SMALL = 16 * MEGABYTE
"""Bytes below which nothing is reserved: the reserve has room for it."""

_TICK = 0.4  # seconds between two looks at the memory, and two calls of `OnPosition`


class OutOfMemoryError(HookVizError):
    """Raised where a run needs more memory than this process can get."""


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """Memory that a pass or a loading takes.

    Attributes:
        nbytes: bytes that it takes at most.
        least: bytes without which it can't go on even alone.
        smaller: says what would fit into that many bytes.
    """

    nbytes: int
    least: int
    smaller: Callable[[int], str]


class MemoryReservations:
    """First-come, first-served line for memory.

    Within a hold, the same thread reserves only what a second one needs beyond it, and never waits
    for that: it may have a slot that those who could give memory back wait for.
    """

    def __init__(self, memory: Memory, give_back: Callable[[int], int]) -> None:
        """Start with nothing reserved.

        Args:
            memory: of this process.
            give_back: drops kept values, as in `Memory.make_room`.
        """
        self._memory, self._give_back = memory, give_back
        self._lock = threading.Lock()
        self._line: list[threading.Condition] = []  # in the order of arrival
        self._held: dict[int, int] = {}  # bytes by thread

    @property
    def held(self) -> int:
        """Bytes that are reserved now."""
        return sum(tuple(self._held.values()))

    @contextmanager
    def hold(
        self, label: str, need: MemoryNeed | None, on_position: OnPosition | None = None
    ) -> Iterator[None]:
        """Wait until there is memory, and reserve it for the block.

        Args:
            label: what needs it, in a person's words.
            need: how much; None for nothing.
            on_position: called in this thread with one's position in the line, about twice a
                second; what it raises leaves the line.

        Raises:
            OutOfMemoryError: there is not as much memory.
            TooLongError: it waited for as long as a run may take.
        """
        thread = threading.get_ident()
        before = self._held.get(thread, 0)
        if need is None or need.nbytes <= max(before, SMALL):
            with self._lock:
                self._memory.make_room(self._give_back)  # what is kept leaves the reserve free
            yield
            return
        if before:
            with self._lock:
                self._is_granted(thread, label, need)
        else:
            self._wait(thread, label, need, on_position)
        try:
            yield
        finally:
            with self._lock:
                self._held[thread] = before
                if not before:
                    del self._held[thread]
                self._wake()

    def _wait(
        self, thread: int, label: str, need: MemoryNeed, on_position: OnPosition | None
    ) -> None:
        limit = TimeLimit.from_now(label)
        turn = threading.Condition(self._lock)
        with self._lock:
            self._line.append(turn)
        try:
            while True:
                with self._lock:
                    if self._line[0] is turn and self._is_granted(thread, label, need):
                        return
                    turn.wait(_TICK)
                    position = self._line.index(turn) + 1
                limit.check()
                if on_position is not None:
                    on_position(position)  # without the lock: it may take its time
        finally:
            with self._lock:
                self._line.remove(turn)
                self._wake()

    # All below are called with the lock held.

    def _is_granted(self, thread: int, label: str, need: MemoryNeed) -> bool:
        """Reserve the bytes if they are free; else say whether to wait for others.

        Raises:
            OutOfMemoryError: a wait would not help.
        """
        before = self._held.get(thread, 0)
        held = sum(self._held.values())
        is_free = self._memory.make_room(self._give_back, held + need.nbytes - before)
        if not is_free:
            if held > before and not before:
                return False
            room = self._memory.free() - held + before
            if need.least > room:
                raise OutOfMemoryError(
                    say(
                        "{label} needs about {need} of memory, and this server has {room} for it. "
                        "{smaller}",
                        label=label,
                        need=memory_size(need.least),
                        room=memory_size(max(0, room)),
                        smaller=need.smaller(room),
                    )
                )
        self._held[thread] = need.nbytes
        return True

    def _wake(self) -> None:
        if self._line:
            self._line[0].notify()
