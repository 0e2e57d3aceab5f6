"""Reserve memory before a pass or a loading begins, so that no two count on the same bytes.

1. What it takes is estimated. Measured on the catalog's largest networks at 1024 pixels, a pass
   takes five times the largest output, for its copies in other layouts and what torch computes in,
   beside what is recorded.
2. Whoever needs memory waits in line, without a slot in the queue of runs. Large ones let others
   by: they need more than half of the reserve.
3. The first in line goes on once its bytes are free beside all that others hold. What is kept
   gives way for it as soon as that is enough, and not before. A byte that its holder has taken
   already counts twice, on the safe side.
4. Where nobody holds anything it may use the reserve too. What does not fit then never will, and
   is refused.
5. Large ones leave others a slot of the queue: one layer of such a pass may compute for seconds.
6. What needs up to `SMALL` bytes reserves nothing. It keeps the reserve free, or so much while
   somebody holds memory, who may be using the reserve.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from math import prod, sqrt

from hookviz.capturing.inputs import own_shape
from hookviz.capturing.layer_trace import input_trace, layer_trace
from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.machine.memory import MEGABYTE, Memory
from hookviz.serving.fair_queue import OnPosition
from hookviz.serving.time_limit import TimeLimit
from hookviz.settings import settings
from hookviz.types import Model, ModelInput
from hookviz.wording import memory_size

SMALL = 64 * MEGABYTE
"""Bytes below which nothing is reserved: the reserve has room for it."""

_TICK = 0.4  # seconds between two looks at the memory, and two calls of `OnPosition`
_COPIES = 5  # of the largest output, at most
_RANDOM, _READ = 1.04, 2  # times the parameters' bytes; what is read is in memory twice
_FLOAT_BYTES = 4
_SIDE_STEP = 32  # pixels between two sides that are suggested


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

    def __init__(
        self,
        memory: Memory,
        give_back: Callable[[int], int],
        droppable: Callable[[], int],
        large_at_once: int,
    ) -> None:
        """Start with nothing reserved.

        Args:
            memory: of this process.
            give_back: drops kept values, as in `Memory.make_room`.
            droppable: returns the bytes that `give_back` could drop.
            large_at_once: how many may hold more than half of the reserve at the same time.
        """
        self._memory, self._give_back, self._droppable = memory, give_back, droppable
        self._large_at_once = large_at_once
        self._lock = threading.Lock()
        self._line: dict[threading.Condition, bool] = {}  # by arrival: whether it is large
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
            reserve = self._memory.reserve
            free = min(SMALL, reserve) if self._held else reserve
            if self._memory.free() < free and self._lock.acquire(blocking=False):
                try:  # where another run makes room now, that is enough
                    self._make_room(free)
                finally:
                    self._lock.release()
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
            self._line[turn] = self._is_large(need.nbytes)
        try:
            while True:
                with self._lock:
                    ahead = self._ahead_of(turn)
                    if not ahead and self._is_granted(thread, label, need):
                        return
                    turn.wait(_TICK)
                    position = len(ahead) + 1
                limit.check()
                if on_position is not None:
                    on_position(position)  # without the lock: it may take its time
        finally:
            with self._lock:
                del self._line[turn]
                self._wake()

    # All below are called with the lock held.

    def _ahead_of(self, mine: threading.Condition) -> list[threading.Condition]:
        before = takewhile(lambda each: each is not mine, self._line)
        return [each for each in before if self._line[mine] or not self._line[each]]

    def _is_granted(self, thread: int, label: str, need: MemoryNeed) -> bool:
        """Reserve the bytes if they are free; else say whether to wait for others.

        Raises:
            OutOfMemoryError: a wait would not help.
        """
        before = self._held.get(thread, 0)
        held = sum(self._held.values())
        needed = self._memory.reserve + held + need.nbytes - before
        may_wait = held > before and not before
        if may_wait and self._is_large(need.nbytes) and self._large_ones >= self._large_at_once:
            return False
        if may_wait and self._memory.free() + self._droppable() < needed:
            return False
        if not self._make_room(needed):
            if may_wait:
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

    def _is_large(self, nbytes: int) -> bool:
        return nbytes > self._memory.reserve // 2

    @property
    def _large_ones(self) -> int:
        return sum(map(self._is_large, self._held.values()))

    def _make_room(self, nbytes: int) -> bool:
        return self._memory.make_room(self._give_back, nbytes)

    def _wake(self) -> None:
        firsts = {is_large: first for first, is_large in reversed(self._line.items())}
        for first in firsts.values():
            first.notify()


def pass_need(
    model: Model, given: ModelInput | tuple[int, ...], *, keeps_all: bool = False
) -> MemoryNeed | None:
    """Return what a pass takes; None where the network can't take the input, which others say.

    Args:
        model: the network.
        given: its input, or the shape of one, ``(C, H, W)``.
        keeps_all: whether all outputs may be kept, as for gradients. It takes more where there is
            more, and goes on alone where there is not.
    """
    try:
        if isinstance(given, ModelInput):
            shape, trace = tuple(given.tensor.shape[1:]), input_trace(model, given)
        else:
            shape, trace = given, layer_trace(model, given)
    except HookVizError:
        return None
    outputs = [(trace.nbytes[name], calls) for name, calls in trace.leaf_calls.items()]
    largest = _COPIES * max((nbytes // calls for nbytes, calls in outputs), default=0)
    together = sum(nbytes for nbytes, _ in outputs)
    recorded = min(together, settings().session_mb * MEGABYTE)
    least = largest + recorded
    nbytes = largest + together if keeps_all else least
    return MemoryNeed(nbytes, least, partial(_smaller_input, shape, least))


def own_pass_need(model: Model, side: int | None = None) -> MemoryNeed | None:
    """Return what a pass takes at the model's own size, or over a square of `side` pixels."""
    shape = own_shape(model)
    return pass_need(model, shape if side is None else (*shape[:-2], side, side))


def loading_need(parameters: int, *, random: bool, reader: int = 0) -> MemoryNeed:
    """Return what loading a network takes.

    Args:
        parameters: how many numbers it learns.
        random: whether its weights are random ones, and not read.
        reader: bytes that a process may take which looks through a file first; it ends before the
            weights are read, and is ended itself where there is no memory.
    """
    each = _FLOAT_BYTES * (_RANDOM if random else _READ)
    nbytes = int(parameters * each)
    return MemoryNeed(max(nbytes, reader), nbytes, partial(_smaller_model, each))


def _smaller_input(shape: tuple[int, ...], least: int, room: int) -> str:
    side = sqrt(prod(shape[-2:]) * max(0, room) / least)
    if side < _SIDE_STEP:
        return say("A smaller model takes less.")
    pixels = int(side // _SIDE_STEP * _SIDE_STEP)
    return say("An input of {pixels}×{pixels} pixels fits.", pixels=pixels)


def _smaller_model(each: float, room: int) -> str:
    millions = int(max(0, room) / each / 1e6)
    if not millions:
        return say("Try again in a moment.")
    return say("A model of at most {millions} million parameters fits.", millions=millions)
