"""The seam between a job over many images and what carries it out, and the engine of this process.

A job is a `Work`, which can be pickled, and its shards, each with all that the work needs of its
images. An engine hands over what the work makes of each shard, in the order of the shards, so that
a job that joins them one by one gives the same whatever carried it out.
"""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

Shard = TypeVar("Shard")
Result = TypeVar("Result")
Shard_contra = TypeVar("Shard_contra", contravariant=True)
Result_co = TypeVar("Result_co", covariant=True)

Tell = Callable[[float, int], None]
"""Told how many images are done so far, and how many of them were left out.

Of an image that is under way a part counts. What it raises ends the job.
"""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a process has to have before it begins with a job.

    Attributes:
        files: paths that it has to see; of each folder with images one of these is enough.
        gpu: whether the network computes on one.
    """

    files: tuple[str, ...] = ()
    gpu: bool = False


class Work(Protocol[Shard_contra, Result_co]):
    """Makes a result of any shard; the same of the same shard, in whatever process it runs."""

    @property
    def needs(self) -> Needs:
        """What it needs where it runs."""
        ...

    def names(self, shard: Shard_contra) -> tuple[str, ...]:
        """What the images of a shard are called, for a message."""
        ...

    def __call__(self, shard: Shard_contra, tell: Tell) -> Result_co:
        """The result of a shard.

        Args:
            shard: with its images, or with what they are read from.
            tell: told how far the shard is; what it raises ends the work.
        """
        ...


class Engine(Protocol):
    """Goes through the shards of a job."""

    def __call__(
        self, work: Work[Shard, Result], shards: Iterable[Shard], tell: Tell
    ) -> Generator[Result, None, None]:
        """The results of `shards`, each by `work`, in the order of the shards.

        Args:
            work: what is done with each shard.
            shards: each is asked for when somebody is free to work on it, and not before.
            tell: told how many images of all shards are done so far, and of those left out.
        """
        ...


class Total:
    """Sums up what is told of single shards.

    A shard that is begun anew, since its worker is gone, tells nothing until it is further than it
    was.
    """

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._done: float = 0
        self._left_out = 0
        self._of_shard: dict[int, tuple[float, int]] = {}

    def shard(self, number: int, done: float, left_out: int) -> None:
        """So much is done of one shard."""
        before = self._of_shard.get(number, (0, 0))
        if done > before[0] or left_out > before[1]:
            now = max(before[0], done), max(before[1], left_out)
            self._of_shard[number] = now
            self._done += now[0] - before[0]
            self._left_out += now[1] - before[1]
            self._tell(self._done, self._left_out)

    def forget(self, number: int) -> None:
        """Nothing more comes of a shard."""
        self._of_shard.pop(number, None)


def in_this_process(
    work: Work[Shard, Result], shards: Iterable[Shard], tell: Tell
) -> Generator[Result, None, None]:
    """The results of shards, one after another; an `Engine`."""
    total = Total(tell)
    for number, shard in enumerate(shards):
        yield work(shard, partial(total.shard, number))
        total.forget(number)
