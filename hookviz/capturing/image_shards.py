"""Divide images into shards, for work that takes one image after another."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from hookviz.engines.engine import Needs
from hookviz.hooking.precision import device_and_dtype
from hookviz.images.urls import is_url
from hookviz.paths import path_of
from hookviz.types import Model

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


def image_shards(images: Mapping[str, Any], size: int) -> Iterator[ImageShard]:
    """Divide the images, by name, into shards of `size`, in their order."""
    rest = iter(images.items())
    while some := tuple(islice(rest, size)):
        names, each = zip(*some, strict=True)
        yield ImageShard(names, each)


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
