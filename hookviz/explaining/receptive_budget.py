"""A bound for what following a pass's receptive fields takes, in time and in memory."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from hookviz.explaining.reach import MOST_VALUES, Reach


@dataclass(slots=True)
class Budget:
    """How much following one pass may take: once it is spent, no function is followed any more.

    Attributes:
        seconds: for following, without the network's own work.
        values: of all the edges that are there at once.
        clock: in seconds; by default it counts what this thread computes, whatever else runs.
        spent: whether either was too much.
    """

    seconds: float = 2.0
    values: int = 4 * MOST_VALUES
    clock: Callable[[], float] = time.thread_time
    spent: bool = field(default=False, init=False)
    _used: float = field(default=0.0, init=False)
    _made: int = field(default=0, init=False)
    _kept: int = field(default=0, init=False)

    @contextmanager
    def measured(self) -> Iterator[None]:
        """A block whose time counts."""
        begin = self.clock()
        try:
            yield
        finally:
            self._used += self.clock() - begin
            self.spent |= self._used > self.seconds

    def keep(self, reach: Reach | None) -> None:
        """One more field is there until the end: of each edge what is left without channels."""
        values = sum(math.prod(edge.shape[-2:]) for edge in reach.edges) if reach else 0
        self._kept += values
        self._made += values

    def take(self, made: Sequence[Reach], alive: Callable[[], Iterable[Reach]]) -> None:
        """These are there now; only once they may be too many `alive` is asked for what is left."""
        self._made += sum(edge.numel() for reach in made for edge in reach.edges)
        if self._made > self.values:
            memory = {
                edge.untyped_storage().data_ptr(): edge.untyped_storage().nbytes()
                // edge.element_size()
                for reach in alive()
                for edge in reach.edges
            }
            self._made = self._kept + sum(memory.values())
            self.spent |= self._made > self.values
