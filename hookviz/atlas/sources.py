"""Which images an atlas is made of: a folder's, a pattern's, or a list of any that are at hand."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from hookviz.capturing.features import named
from hookviz.errors import HookVizError
from hookviz.images.listing import expand
from hookviz.paths import path_of
from hookviz.types import InputImage, ModelInput


@dataclass(frozen=True, slots=True)
class Source:
    """One image among those that an atlas is made of.

    Attributes:
        name: the way to it from the folder that was given, with ``/``, or what it is called.
        image: anything that `prepare` takes.
        category: the folder that it lies in, within the folder that was given; empty without one.
    """

    name: str
    image: Any = field(repr=False)
    category: str = ""

    @property
    def path(self) -> Path | None:
        """The file, where it is one."""
        return path_of(self.image) if isinstance(self.image, str | os.PathLike) else None


def sources(images: Mapping[str, Any] | Iterable[Any] | str | os.PathLike[str]) -> list[Source]:
    """Every image once, in order: by name within a folder, else as they were given.

    A folder gives the images in its folders too. Those are classes: ``photos/cats/1.jpg`` of
    ``photos`` is of the class ``cats``.

    Args:
        images: a folder, a pattern, a file, or several of these; or images themselves, by their
            names where it is a mapping, in which ``cats/1.jpg`` is of the class ``cats``.

    Raises:
        ImageError: a folder or a pattern gives no image.
        HookVizError: there is no image.
    """
    if isinstance(images, Mapping):
        listed = [Source(name, image, _first(name)) for name, image in images.items()]
    else:
        if isinstance(images, str | bytes | os.PathLike | Image.Image | InputImage | ModelInput):
            images = [images]
        listed = list(_listed(images))
    if not listed:
        raise HookVizError("There is no image to make an atlas of; give a folder, or a list.")
    return listed


def _listed(images: Iterable[Any]) -> Iterable[Source]:
    counts: Counter[str] = Counter()
    seen: set[Path] = set()

    def source(plain: str, image: Any, category: str = "") -> Source:
        counts[plain] += 1
        name = plain if counts[plain] == 1 else f"{plain} ({counts[plain]})"
        return Source(name, image, category)

    for place, image in enumerate(images, start=1):
        if not isinstance(image, str | os.PathLike):
            [plain] = named([image])
            yield source(f"image {place}" if plain == "image 1" else plain, image)
            continue
        base = path_of(image)
        for file in expand([os.fspath(image)], inside=True):
            if file in seen:
                continue
            seen.add(file)
            within = file.relative_to(base) if base.is_dir() else Path(file.name)
            yield source(within.as_posix(), file, _first(within.as_posix()))


def _first(name: str) -> str:
    """The first of the folders in a name with ``/``; empty where there is none."""
    first, _, rest = name.partition("/")
    return first if rest else ""
