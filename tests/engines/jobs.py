"""Work without networks, light enough to be loaded by a worker at once."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hookviz.engines.engine import Needs, ReportImages
from hookviz.errors import ImageError


@dataclass
class Doubling:
    """Doubles each number of a shard."""

    needs: Needs = field(default_factory=Needs)

    def names(self, shard: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(f"{number}.jpg" for number in shard)

    def __call__(self, shard: tuple[int, ...], report: ReportImages) -> list[int]:
        for done in range(len(shard)):
            report(done + 1, 0)
        return [2 * number for number in shard]


@dataclass
class Pids(Doubling):
    """Tells in which process each shard is worked on, once there are two of them."""

    folder: Path = Path()

    def __call__(self, shard: tuple[int, ...], report: ReportImages) -> list[int]:
        (self.folder / str(os.getpid())).touch()
        until = time.monotonic() + 60
        while len(list(self.folder.iterdir())) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        return [os.getpid(), *super().__call__(shard, report)]


@dataclass
class Slow(Doubling):
    """Takes its time, tells of each number, and writes down in which process."""

    mark: Path = Path()

    def __call__(self, shard: tuple[int, ...], report: ReportImages) -> list[int]:
        self.mark.write_text(str(os.getpid()))
        for done in range(len(shard)):
            time.sleep(0.4)
            report(done + 1, done)
        return list(shard)


@dataclass
class Deadly(Doubling):
    """Takes its process with it at one number, every time."""

    at: int = 3

    def __call__(self, shard: tuple[int, ...], report: ReportImages) -> list[int]:
        if self.at in shard:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(shard, report)


@dataclass
class KilledOnce:
    """Other work on numbered shards, whose process is killed in the middle of one, once."""

    work: Any
    mark: Path
    shard: int

    @property
    def needs(self) -> Needs:
        needs: Needs = self.work.needs
        return needs

    def names(self, shard: Any) -> tuple[str, ...]:
        names: tuple[str, ...] = self.work.names(shard[1])
        return names

    def __call__(self, shard: Any, report: ReportImages) -> Any:
        number, inner = shard

        def kill(done: float, left_out: int) -> None:
            report(done, left_out)
            if number == self.shard and not self.mark.exists():
                self.mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)

        return self.work(inner, kill)


@dataclass
class Failing(Doubling):
    """Refuses one number, as a bad setting would be."""

    error: type[Exception] = ImageError

    def __call__(self, shard: tuple[int, ...], report: ReportImages) -> list[int]:
        if 2 in shard:
            raise self.error("the number 2 is refused")
        return super().__call__(shard, report)


@dataclass
class Unloadable(Doubling):
    """Can be packed, and unpacked nowhere."""

    fault: Callable[[], Any] = ValueError

    def __reduce__(self) -> tuple[Any, ...]:
        return _fail, (self.fault,)


def _fail(fault: Callable[[], Any]) -> Any:
    raise fault()


def no_module() -> Exception:
    return ModuleNotFoundError("No module named 'nets'")


def end_process() -> Exception:
    os.kill(os.getpid(), signal.SIGKILL)
    return OSError()
