"""Define jobs over many images and the engines that run them, and choose an engine by its name.

A job is a `Work`, which can be pickled, and its shards, each with all that the work needs of its
images. An engine hands over what the work makes of each shard, in the order of the shards, so that
a job that joins them one by one gives the same whatever carried it out.
"""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Protocol, TypeVar

from hookviz.errors import EngineError, SettingError, shorten

Shard = TypeVar("Shard")
Result = TypeVar("Result")
Shard_contra = TypeVar("Shard_contra", contravariant=True)
Result_co = TypeVar("Result_co", covariant=True)

ReportImages = Callable[[float, int], None]
"""Called with how many images are done so far, and how many of them were left out.

Of an image that is under way a part counts. What it raises ends the job.
"""

LOCAL, RAY = "local", "ray"
_CHOICES = "'local', 'ray' and 'ray://HOST:PORT'"


@dataclass(frozen=True, slots=True)
class Needs:
    """Requirements of a job on the process that runs it.

    Attributes:
        files: paths that it has to see; of each folder with images one of these is enough.
        gpu: whether the network computes on one.
    """

    files: tuple[str, ...] = ()
    gpu: bool = False


class Work(Protocol[Shard_contra, Result_co]):
    """Picklable function from a shard to its result, the same in whatever process it runs."""

    @property
    def needs(self) -> Needs:
        """Requirements on the process in which it runs."""
        ...

    def names(self, shard: Shard_contra) -> tuple[str, ...]:
        """Return the names of a shard's images, for a message."""
        ...

    def __call__(self, shard: Shard_contra, report: ReportImages) -> Result_co:
        """Return the result of a shard.

        Args:
            shard: with its images, or with what they are read from.
            report: called with how far the shard is; what it raises ends the work.
        """
        ...


class Engine(Protocol):
    """Function that runs a job's shards and yields their results in order."""

    def __call__(
        self, work: Work[Shard, Result], shards: Iterable[Shard], report: ReportImages
    ) -> Generator[Result, None, None]:
        """Yield the result of `work` for each of `shards`, in their order.

        Args:
            work: what is done with each shard.
            shards: each is asked for when somebody is free to work on it, and not before.
            report: called with how many images of all shards are done so far, and left out.
        """
        ...


class TotalProgress:
    """Sum of the progress of single shards, reported as one.

    A shard that is begun anew, since its worker is gone, adds nothing until it is further than it
    was.
    """

    def __init__(self, report: ReportImages) -> None:
        self._report = report
        self._done: float = 0
        self._left_out = 0
        self._of_shard: dict[int, tuple[float, int]] = {}

    def shard(self, number: int, done: float, left_out: int) -> None:
        """Take in how many images of a shard are done and left out so far."""
        before = self._of_shard.get(number, (0, 0))
        if done > before[0] or left_out > before[1]:
            now = max(before[0], done), max(before[1], left_out)
            self._of_shard[number] = now
            self._done += now[0] - before[0]
            self._left_out += now[1] - before[1]
            self._report(self._done, self._left_out)

    def forget(self, number: int) -> None:
        """Drop the count of a shard that is finished."""
        self._of_shard.pop(number, None)


def in_this_process(
    work: Work[Shard, Result], shards: Iterable[Shard], report: ReportImages
) -> Generator[Result, None, None]:
    """Yield the results of shards, computed one after another here; an `Engine`."""
    total = TotalProgress(report)
    for number, shard in enumerate(shards):
        yield work(shard, partial(total.shard, number))
        total.forget(number)


def engine_of(engine: str | Engine, workers: int | None = None) -> Engine:
    """Return the engine of a name: this process, or the workers of a Ray cluster.

    Args:
        engine: ``"local"``; ``"ray"`` for the cluster that ``RAY_ADDRESS`` says, or else one of
            this machine's processors, for the time of the job; ``"ray://HOST:10001"`` for the
            cluster there. An engine is given back as it is.
        workers: how many processes of a cluster work at once; one for each processor by default.

    Raises:
        SettingError: the engine does not exist, or `workers` means nothing to it.
        EngineError: Ray is not installed.
    """
    if workers is not None and (isinstance(workers, bool) or workers < 1):
        raise SettingError(f"workers={workers!r} is no whole number above 0.")
    if not isinstance(engine, str):
        if not callable(engine):
            raise SettingError(f"engine={shorten(repr(engine))} is none of {_CHOICES}.")
        return engine
    if engine == LOCAL:
        if workers is not None:
            raise SettingError("workers= is for engine='ray'; this process works alone.")
        return in_this_process
    if engine != RAY and not (engine.startswith("ray://") and len(engine) > len("ray://")):
        raise SettingError(f"engine={shorten(engine)!r} is none of {_CHOICES}.")
    address = None if engine == RAY else engine
    ray_engine: Engine = _ray_engine().RayEngine(address=address, workers=workers)
    return ray_engine


def _ray_engine() -> Any:
    """Import the module that knows Ray, for those alone who ask for it."""
    try:
        return import_module("hookviz.engines.ray_engine")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != RAY:
            raise
        raise EngineError(
            "Ray is not installed: pip install 'hookviz[ray]'. engine='local' works without it."
        ) from error
