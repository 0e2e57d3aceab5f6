"""Divide images into shards, and read them in threads, a bounded number ahead of the passes."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from torch import Tensor

from hookviz.capturing.inputs import open_source, prepare_input
from hookviz.engines.engine import Needs, ReportImages
from hookviz.errors import HookVizError, ImageError
from hookviz.hooking.device import device_and_dtype
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.images.files import is_url
from hookviz.language.saying import say
from hookviz.paths import path_of
from hookviz.types import InputImage, Model, ModelInput

Outcome = TypeVar("Outcome")

_MOST_FOLDERS = 64  # of which one file each is looked for where the work is done


@dataclass(frozen=True, eq=False, slots=True)
class ImageShard:
    """Images that stand one after another among all, with their names.

    Attributes:
        names: what they are called.
        images: what `prepare_input` takes.
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


Item = TypeVar("Item")
Result = TypeVar("Result")

READ_THREADS = max(2, min(8, os.cpu_count() or 2))
"""Number of images that are read at once."""


@dataclass(frozen=True, eq=False, slots=True)
class ReadyImage:
    """Image as the network's input.

    Attributes:
        index: among all images.
        tensor: ``(1, C, H, W)``.
        digest: of the picture, or of the tensor where that was given.
    """

    index: int
    tensor: Tensor
    digest: bytes


@dataclass(frozen=True, slots=True)
class UnreadableImage:
    """Image that can't be used, and why."""

    index: int
    reason: str


def map_in_order(
    work: Callable[[Item], Result], items: Iterable[Item], ahead: int
) -> Iterator[Result]:
    """Yield what `work` returns for each item, in order, with at most `ahead` of them under way."""
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(READ_THREADS, "hookviz-images")
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def read_input(
    model: Model, image: object, size: int | None, *, whole: bool = False
) -> tuple[InputImage | None, ModelInput, bytes]:
    """Read an image, and return its pixels, the model's input of it, and its digest.

    Raises:
        HookVizError: it can't be read, or can't be made an input.
    """
    picture = read_pixels(model, image)
    if not isinstance(picture, InputImage):
        model_input = prepare_input(model, picture)
        return None, model_input, bytes.fromhex(model_input.digest)
    return (
        picture,
        prepare_input(model, picture, size=size, whole=whole),
        bytes.fromhex(picture.digest),
    )


def read_pixels(model: Model, image: object) -> InputImage | Tensor | ModelInput:
    """Read an image, and return its pixels, or the tensor or the input that it is.

    Raises:
        HookVizError: it can't be read.
    """
    try:
        return open_source(model, image)
    except OSError as error:  # it goes while it is read
        raise ImageError(
            say("It can't be read: {reason}.", reason=error.strerror or error)
        ) from error


def read_batches(
    model: Model,
    images: Sequence[object],
    indices: range,
    batch: int,
    size: int | None,
    *,
    whole: bool = False,
) -> Iterator[list[ReadyImage | UnreadableImage]]:
    """Yield the images at `indices`, `batch` of them at a time, ready for a pass."""

    def ready(index: int) -> ReadyImage | UnreadableImage:
        try:
            _, model_input, digest = read_input(model, images[index], size, whole=whole)
        except HookVizError as error:
            return UnreadableImage(index, str(error))
        return ReadyImage(index, model_input.tensor, digest)

    together: list[ReadyImage | UnreadableImage] = []
    for result in map_in_order(ready, indices, 2 * batch + READ_THREADS):
        together.append(result)
        if len(together) == batch:
            yield together
            together = []
    if together:
        yield together
