"""List the images that an atlas is made of: a folder's, a pattern's, or any list of them."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hookviz.capturing.batch_images import ONE_IMAGE, Images, images_of, named
from hookviz.errors import HookVizError
from hookviz.images.files import ImageUrl, expand, expand_url, is_url
from hookviz.language.saying import say
from hookviz.paths import path_of
from hookviz.types import Model


@dataclass(frozen=True, slots=True)
class Source:
    """Image among those that an atlas is made of.

    Attributes:
        name: its path from the folder that was given, with ``/``, or what it is called.
        image: anything that `prepare` takes.
        category: the folder that it lies in, within the folder that was given; empty without one.
    """

    name: str
    image: Any = field(repr=False)
    category: str = ""

    @property
    def path(self) -> Path | None:
        """File of the image, where it is one of this machine."""
        if isinstance(self.image, str | os.PathLike) and not is_url(self.image):
            return path_of(self.image)
        return None


def sources(model: Model, images: Images) -> list[Source]:
    """List every image once: by name within a folder, else in the given order.

    A folder gives the images in its folders too. Those are classes: ``photos/cats/1.jpg`` of
    ``photos`` is of the class ``cats``.

    Args:
        model: for which they are.
        images: a folder, a pattern, a file, a URL, or several of these; or images themselves, a
            dataset or a loader of them, or by their names where it is a mapping, in which
            ``cats/1.jpg`` is of the class ``cats``.

    Raises:
        ImageError: a folder or a pattern gives no image.
        HookVizError: there is no image.
    """
    if isinstance(images, Mapping):
        listed = [Source(name, image, _first_folder(name)) for name, image in images.items()]
    else:
        if isinstance(images, ONE_IMAGE):
            images = [images]
        listed = list(_listed(images_of(model, images, expand_folders=False)))
    if not listed:
        raise HookVizError(say("There is no image to make an atlas of; give a folder, or a list."))
    return listed


def _listed(images: Iterable[Any]) -> Iterable[Source]:
    counts: Counter[str] = Counter()
    seen: set[Any] = set()

    def source(plain: str, image: Any, category: str = "") -> Source:
        counts[plain] += 1
        name = plain if counts[plain] == 1 else f"{plain} ({counts[plain]})"
        return Source(name, image, category)

    for index, image in enumerate(images, start=1):
        if not isinstance(image, str | os.PathLike | ImageUrl):
            [plain] = named([image])
            yield source(say("image {index}", index=index) if plain == "image 1" else plain, image)
            continue
        for within, file in _files(image):
            if file not in seen:
                seen.add(file)
                yield source(within, file, _first_folder(within))


def _files(path: str | os.PathLike[str] | ImageUrl) -> Iterable[tuple[str, Any]]:
    """List the files of a folder, a pattern or a name, each with its path from there."""
    if isinstance(path, ImageUrl) or is_url(path):
        return expand_url(str(path), inside=True)
    base = path_of(path)
    files = expand([os.fspath(path)], inside=True)
    if not base.is_dir():
        return [(file.name, file) for file in files]
    top = len(base.parts)
    return [("/".join(file.parts[top:]), file) for file in files if isinstance(file, Path)]


def _first_folder(name: str) -> str:
    """Return the first folder in a name with ``/``; empty where there is none."""
    first, _, rest = name.partition("/")
    return first if rest else ""
