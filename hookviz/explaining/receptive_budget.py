"""Bound the time and memory that tracing a pass's receptive fields takes."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from hookviz.explaining.receptive_extent import MAX_EDGE_VALUES, Extent


@dataclass(slots=True)
class Budget:
    """Time and memory budget for tracing one pass: once it is spent, functions are not traced.

    Attributes:
        seconds: for tracing, without the network's own work.
        values: of all the edges alive at once.
        clock: in seconds; by default this thread's CPU time.
        spent: whether either is used up.
    """

    seconds: float = 2.0
    values: int = 4 * MAX_EDGE_VALUES
    clock: Callable[[], float] = time.thread_time
    spent: bool = field(default=False, init=False)
    _used: float = field(default=0.0, init=False)
    _allocated: int = field(default=0, init=False)
    _kept: int = field(default=0, init=False)

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Count the time of a block."""
        begin = self.clock()
        try:
            yield
        finally:
            self._used += self.clock() - begin
            self.spent |= self._used > self.seconds

    def keep(self, extent: Extent | None) -> None:
        """Count a field that is kept until the end: of each edge what is left without channels."""
        values = sum(math.prod(edge.shape[-2:]) for edge in extent.edges) if extent else 0
        self._kept += values
        self._allocated += values

    def take(self, new: Sequence[Extent], alive: Callable[[], Iterable[Extent]]) -> None:
        """Count new extents; `alive` is asked which are left only once they may be too many."""
        self._allocated += sum(edge.numel() for extent in new for edge in extent.edges)
        if self._allocated > self.values:
            memory = {
                edge.untyped_storage().data_ptr(): edge.untyped_storage().nbytes()
                // edge.element_size()
                for extent in alive()
                for edge in extent.edges
            }
            self._allocated = self._kept + sum(memory.values())
            self.spent |= self._allocated > self.values
