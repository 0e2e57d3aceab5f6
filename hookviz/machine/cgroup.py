"""Read what this process's control group may use on Linux: memory and processors."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_LISTING = Path("/proc/self/cgroup")


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


def memory_group(root: Path = _ROOT, listing: Path = _LISTING) -> MemoryGroup | None:
    """Return the group with the least memory among this process's and those above; None without."""
    groups = [
        *_memory_v2(_folders(root, _path_of("", listing))),
        *_memory_v1(_folders(root / "memory", _path_of("memory", listing))),
    ]
    return min(groups, key=lambda group: group.limit, default=None)


def processors(root: Path = _ROOT, listing: Path = _LISTING) -> float | None:
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


def _memory_v2(folders: Iterator[Path]) -> Iterator[MemoryGroup]:
    for folder in folders:
        limit = _read(folder / "memory.max")
        if limit.isdigit():  # "max" stands for no bound
            yield MemoryGroup(
                int(limit), folder / "memory.current", folder / "memory.stat", "inactive_file"
            )


def _memory_v1(folders: Iterator[Path]) -> Iterator[MemoryGroup]:
    for folder in folders:
        limit = _read(folder / "memory.limit_in_bytes")
        if limit.isdigit() and int(limit) < 1 << 60:  # a huge number stands for no bound
            yield MemoryGroup(
                int(limit),
                folder / "memory.usage_in_bytes",
                folder / "memory.stat",
                "total_inactive_file",
            )


def _read(file: Path) -> str:
    """Return a file's text; empty where it is not there."""
    try:
        return file.read_text("ascii").strip()
    except OSError:
        return ""
