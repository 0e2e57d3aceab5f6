"""Divide images into shards, and do work that takes one image after another."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from hookviz.engines.engine import Needs, ReportImages
from hookviz.errors import HookVizError
from hookviz.hooking.device import device_and_dtype
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.images.files import is_url
from hookviz.paths import path_of
from hookviz.types import Model

Outcome = TypeVar("Outcome")

_MOST_FOLDERS = 64  # of which one file each is looked for where the work is done


@dataclass(frozen=True, eq=False, slots=True)
class ImageShard:
    """Images that stand one after another among all, with their names.

    Attributes:
        names: what they are called.
        images: what `prepare` takes.
    """

    names: tuple[str, ...]
    images: tuple[Any, ...] = field(repr=False)


def image_shards(images: Iterable[tuple[str, Any]], size: int) -> Iterator[ImageShard]:
    """Divide named images into shards of `size`, in their order, as they come."""
    rest = iter(images)
    while some := tuple(islice(rest, size)):
        names, each = zip(*some, strict=True)
        yield ImageShard(names, each)


def outcome_of_each(
    shard: ImageShard,
    report: ReportImages,
    make: Callable[[int, Any, ProgressReporter], Outcome],
    *,
    of_all: tuple[type[HookVizError], ...] = (),
) -> dict[str, Outcome | HookVizError]:
    """Return what is made of each image of a shard, or why nothing is, by its name.

    Args:
        shard: the images.
        report: told how many are done, and how many of them were left out.
        make: makes it of an image, given its place in the shard and whom to tell how far it is.
        of_all: errors that every image would end in; they are raised.
    """
    count, left_out = len(shard.names), 0
    reporter = ProgressReporter(lambda share: report(count * share, left_out), count)
    outcomes: dict[str, Outcome | HookVizError] = {}
    for place, (name, image) in enumerate(zip(shard.names, shard.images, strict=True)):
        try:
            outcomes[name] = make(place, image, reporter)
        except HookVizError as error:
            if isinstance(error, of_all) or reporter.was_ended_by(error):
                raise
            outcomes[name] = error
            left_out += 1
        reporter.step()
    return outcomes


def needs_of(models: Sequence[Model], images: Iterable[Any]) -> Needs:
    """Return what a process needs that takes `images` through `models`.

    It has to see a file of each folder that is seen here, of the first folders: an empty folder is
    what a disk that is not mounted looks like.
    """
    files: dict[str, str] = {}
    for image in images:
        if not isinstance(image, str | os.PathLike) or is_url(image):
            continue
        text = os.fspath(image)
        folder = os.path.dirname(text)  # noqa: PTH120 - of a million paths, most of few folders
        if folder not in files and (path := path_of(text).absolute()).exists():
            files[folder] = str(path)
            if len(files) == _MOST_FOLDERS:
                break
    gpu = any(device_and_dtype(model.network)[0].type == "cuda" for model in models)
    return Needs(tuple(files.values()), gpu)
