"""Measure how much memory this process may use and uses, and make room where it is short."""

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hookviz.machine import cgroup

MEGABYTE = 1024 * 1024

_UNKNOWN = 4096 * MEGABYTE  # taken where a system does not say what it has
_RESERVE = 512 * MEGABYTE  # what a run may need on top, at most
_STEP = MEGABYTE  # given up at least at once, since some of it is still in use
_SHORT = ("can't allocate memory", "not enough memory", "bad_alloc", "out of memory")
_STATM, _MEMINFO = Path("/proc/self/statm"), Path("/proc/meminfo")


@dataclass(frozen=True, slots=True)
class Memory:
    """Bound on this process's memory in bytes, and how near it is.

    Attributes:
        limit: bytes that this process may use.
        used: tells the bytes that count against the limit now.
    """

    limit: int
    used: Callable[[], int]

    @property
    def reserve(self) -> int:
        """Bytes that should be free when a run starts: an eighth of the limit, at most 512 MB."""
        return min(_RESERVE, self.limit // 8)

    def free(self) -> int:
        """Return the bytes that this process may still take and the machine still has."""
        left = self.limit - self.used()
        machine = _available()
        return left if machine is None else min(left, machine)

    def make_room(self, give_back: Callable[[int], int], needed: int = 0) -> bool:
        """Evict what is kept until so much is free beside the reserve, and return whether it is.

        Args:
            give_back: drops kept values of at least that many bytes, where there are any, and tells
                how many bytes went.
            needed: bytes beside the reserve.
        """
        needed += self.reserve
        if self.free() < needed:
            return_to_system()  # what lies free counts as used until it has gone
        while (short := needed - self.free()) > 0:
            if not give_back(max(short, _STEP)):
                return False
            return_to_system()
        return True


def own_memory(megabytes: int = 0, processes: int = 1) -> Memory:
    """Return what this process may use: `megabytes`, its control group's bound, or the machine.

    Of the three the least counts, so a wrong number can't ask for more than there is. The machine
    and the control group are shared equally by that many processes.
    """
    bounds = [Memory((machine_bytes() or _UNKNOWN) // processes, resident)]
    if megabytes:
        bounds.append(Memory(megabytes * MEGABYTE, resident))
    group = cgroup.memory_group()
    if group is not None:
        # What the group uses is what all of them use; of the share counts one's own.
        used = group.used if processes == 1 else resident
        bounds.append(Memory(group.limit // processes, used))
    return min(bounds, key=lambda memory: memory.limit)


def is_short_of_memory(error: BaseException | None) -> bool:
    """Return whether an error, or one that it comes from, says that memory was short.

    torch says so in a `RuntimeError`.
    """
    while error is not None:
        if isinstance(error, MemoryError) or any(part in str(error) for part in _SHORT):
            return True
        error = error.__cause__
    return False


def machine_bytes() -> int | None:
    """Return the bytes of memory that the machine has; None where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def resident() -> int:
    """Return the bytes of this process in memory; 0 where the system has no ``/proc``."""
    try:
        return int(_STATM.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def cores() -> int:
    """Return how many processors this process may use, rounded up; at least 1."""
    try:
        mine = len(os.sched_getaffinity(0))
    except AttributeError:
        mine = os.cpu_count() or 1
    share = cgroup.processors()
    return mine if share is None else max(1, min(mine, int(share + 0.999)))


def _available() -> int | None:
    """Return the bytes that the machine can give without swapping; None where it does not say."""
    try:
        lines = _MEMINFO.read_text("ascii").splitlines()
    except OSError:
        return None
    return next(
        (int(line.split()[1]) * 1024 for line in lines if line[:13] == "MemAvailable:"), None
    )


def return_to_system() -> None:
    """Hand freed memory back to the system: glibc keeps it, and it would count as used."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        return  # another C library, which has its own ways
