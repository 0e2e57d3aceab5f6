"""Keep freed memory in the process, so that its next pass needs no fresh pages.

A pass asks for tens of megabytes, layer by layer, and gives them back. By default glibc hands large
blocks to the system at once, which has to clear every page anew when they are asked for again.
"""

import ctypes
import os

from hookviz.machine.memory import MEGABYTE

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # of glibc's malloc.h
_LARGE = 1024 * MEGABYTE
_CHOSEN = "MALLOC_", "GLIBC_TUNABLES"


def keep_freed_memory(at_most: int) -> bool:
    """Keep what is freed for the next who asks, and return whether the process does so now.

    Where more than `at_most` bytes lie free at the end of the heap, the system gets them back; all
    that lies free goes back by `hookviz.machine.memory.return_to_system`. All threads share one
    heap: glibc gives others heaps of 64 MB, which hold no pass. What counts is the whole process,
    so only one that does nothing but serve calls this, before its threads begin.

    Nothing happens where the C library is another, or somebody chose bounds by the environment.

    >>> keep_freed_memory(512 * MEGABYTE)  # doctest: +SKIP
    True
    """
    if any(name.startswith(_CHOSEN) for name in os.environ):
        return False
    try:
        library = ctypes.CDLL(None)
        mallopt, _ = library.mallopt, library.gnu_get_libc_version  # others count otherwise
    except (OSError, AttributeError, TypeError):
        return False
    bounds = {_ARENA_MAX: 1, _MMAP_THRESHOLD: _LARGE, _TRIM_THRESHOLD: at_most}
    return all(mallopt(kind, bound) for kind, bound in bounds.items())
