"""Read images and make them inputs in threads, a bounded number ahead of the passes."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from torch import Tensor

from hookviz.capturing.inputs import open_source, prepare
from hookviz.errors import HookVizError, ImageError
from hookviz.language.saying import say
from hookviz.types import InputImage, Model, ModelInput

Item = TypeVar("Item")
Result = TypeVar("Result")

THREADS = max(2, min(8, os.cpu_count() or 2))
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


def in_order(work: Callable[[Item], Result], items: Iterable[Item], ahead: int) -> Iterator[Result]:
    """Yield what `work` returns for each item, in order, with at most `ahead` of them under way."""
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(THREADS, "hookviz-images")
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def read(
    model: Model, image: object, size: int | None, *, whole: bool = False
) -> tuple[InputImage | None, ModelInput, bytes]:
    """Read an image, and return its pixels, the model's input of it, and its digest.

    Raises:
        HookVizError: it can't be read, or can't be made an input.
    """
    picture = read_pixels(model, image)
    if not isinstance(picture, InputImage):
        model_input = prepare(model, picture)
        return None, model_input, bytes.fromhex(model_input.digest)
    return picture, prepare(model, picture, size=size, whole=whole), bytes.fromhex(picture.digest)


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


def batches(
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
            _, model_input, digest = read(model, images[index], size, whole=whole)
        except HookVizError as error:
            return UnreadableImage(index, str(error))
        return ReadyImage(index, model_input.tensor, digest)

    together: list[ReadyImage | UnreadableImage] = []
    for result in in_order(ready, indices, 2 * batch + THREADS):
        together.append(result)
        if len(together) == batch:
            yield together
            together = []
    if together:
        yield together
