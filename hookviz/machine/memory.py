"""Measure the memory and processors that this process may use, and make room where memory is short.

On Linux the process's control group may bound both. `keep_freed_memory` has glibc keep what a pass
gives back: by default it hands large blocks to the system at once, which has to clear every page
anew for the next pass.
"""

import ctypes
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

MEGABYTE = 1024 * 1024

_UNKNOWN = 4096 * MEGABYTE  # taken where a system does not say what it has
_RESERVE = 512 * MEGABYTE  # what a run may need on top, at most
_STEP = MEGABYTE  # given up at least at once, since some of it is still in use
_SHORT = ("can't allocate memory", "not enough memory", "bad_alloc", "out of memory")
_STATM, _MEMINFO = Path("/proc/self/statm"), Path("/proc/meminfo")
_CGROUP_ROOT = Path("/sys/fs/cgroup")
_CGROUP_LISTING = Path("/proc/self/cgroup")
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # of glibc's malloc.h
_MMAP_BYTES = 1024 * MEGABYTE
_CHOSEN_BY = "MALLOC_", "GLIBC_TUNABLES"


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

    def make_room(self, give_back: Callable[[int], int], needed: int) -> bool:
        """Evict cached values until `needed` bytes are free, and return whether they are.

        Args:
            give_back: drops cached values of at least that many bytes, where there are any, and
                returns how many bytes went.
            needed: the bytes.
        """
        if self.free() < needed:
            return_to_system()  # what lies free counts as used until it has gone
        while (short := needed - self.free()) > 0:
            if not give_back(max(short, _STEP)):
                return False
            return_to_system()
        return True


def own_memory(megabytes: int = 0, processes: int = 1) -> Memory:
    """Return the memory of this process: `megabytes`, its control group's bound, or the machine.

    The least of the three counts, so a wrong number can't ask for more than there is. The machine
    and the control group are shared equally by that many processes.
    """
    bounds = [Memory((machine_bytes() or _UNKNOWN) // processes, resident)]
    if megabytes:
        bounds.append(Memory(megabytes * MEGABYTE, resident))
    group = memory_group()
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
    share = processors()
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


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """Control group that bounds this process's memory, and the files that tell its use.

    Attributes:
        limit: bytes that all processes of the group may use together.
        current: the file that tells the bytes in use, the cache of files included.
        statistics: the file whose `reclaimable` line tells how much of that can go at any time.
        reclaimable: the name of that line.
    """

    limit: int
    current: Path
    statistics: Path
    reclaimable: str

    def used(self) -> int:
        """Return the bytes in use that the kernel can't take back by forgetting files."""
        idle = 0
        for line in self.statistics.read_text("ascii").splitlines():
            name, _, value = line.partition(" ")
            if name == self.reclaimable:
                idle = int(value)
                break
        return max(0, int(self.current.read_text("ascii")) - idle)


def memory_group(root: Path = _CGROUP_ROOT, listing: Path = _CGROUP_LISTING) -> MemoryGroup | None:
    """Return the group with the least memory among this process's and those above; None without."""
    v2 = _folders(root, _path_of("", listing))
    v1 = _folders(root / "memory", _path_of("memory", listing))
    v1_files = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
    groups = [
        *_groups(v2, "memory.max", "memory.current", "inactive_file"),
        *_groups(v1, *v1_files),
    ]
    return min(groups, key=lambda group: group.limit, default=None)


def processors(root: Path = _CGROUP_ROOT, listing: Path = _CGROUP_LISTING) -> float | None:
    """Return how many processors' time the groups allow; None where they set no bound."""
    shares = []
    for folder in _folders(root, _path_of("", listing)):
        quota, _, period = _read(folder / "cpu.max").partition(" ")
        if quota.isdigit():
            shares.append(int(quota) / int(period))
    for folder in _folders(root / "cpu", _path_of("cpu", listing)):
        quota = _read(folder / "cpu.cfs_quota_us")
        if quota.isdigit():  # -1 stands for no bound
            shares.append(int(quota) / int(_read(folder / "cpu.cfs_period_us")))
    return min(shares, default=None)


def _path_of(controller: str, listing: Path) -> str:
    """Return the group's path below the mount of a v1 controller, or of v2 (the empty name)."""
    for line in _read(listing).splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path.strip("/")
    return ""


def _folders(top: Path, path: str) -> Iterator[Path]:
    """Yield the group's folder and all above it; a container sees its own group at the top."""
    inside = Path(path)
    if ".." not in inside.parts:
        for part in (inside, *inside.parents):
            if (top / part).is_dir():
                yield top / part


def _groups(
    folders: Iterator[Path], limit_file: str, use_file: str, reclaimable: str
) -> Iterator[MemoryGroup]:
    """Yield the groups with a bound; ``max`` or a huge number stands for none."""
    for folder in folders:
        limit = _read(folder / limit_file)
        if limit.isdigit() and int(limit) < 1 << 60:
            yield MemoryGroup(int(limit), folder / use_file, folder / "memory.stat", reclaimable)


def _read(file: Path) -> str:
    """Return a file's text; empty where it is not there."""
    try:
        return file.read_text("ascii").strip()
    except OSError:
        return ""


def keep_freed_memory(at_most: int) -> bool:
    """Keep what is freed for the next who asks, and return whether the process does so now.

    Where more than `at_most` bytes lie free at the end of the heap, the system gets them back; all
    that lies free goes back by `return_to_system`. All threads share one
    heap: glibc gives others heaps of 64 MB, which hold no pass. What counts is the whole process,
    so only one that does nothing but serve calls this, before its threads begin.

    Nothing happens where the C library is another, or somebody chose bounds by the environment.

    >>> keep_freed_memory(512 * MEGABYTE)  # doctest: +SKIP
    True
    """
    if any(name.startswith(_CHOSEN_BY) for name in os.environ):
        return False
    try:
        library = ctypes.CDLL(None)
        mallopt, _ = library.mallopt, library.gnu_get_libc_version  # others count otherwise
    except (OSError, AttributeError, TypeError):
        return False
    bounds = {_ARENA_MAX: 1, _MMAP_THRESHOLD: _MMAP_BYTES, _TRIM_THRESHOLD: at_most}
    return all(mallopt(kind, bound) for kind, bound in bounds.items())
