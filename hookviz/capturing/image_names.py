"""Name images: by their files, or ``"image 3"``."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor

from hookviz.capturing.batch_images import ONE_IMAGE, images_of, is_batch
from hookviz.errors import ImageError, shorten
from hookviz.images.files import ImageUrl, is_url
from hookviz.language.saying import say
from hookviz.types import InputImage, Model


def name_images(model: Model, images: Any) -> Iterator[tuple[str, Any]]:
    """Yield each image with its name, one after another; a name's second use gets a number.

    Args:
        model: for which they are.
        images: by name, one image, or what `hookviz.capture` takes as several.

    Raises:
        ImageError: they are neither.
    """
    if isinstance(images, Mapping) and "pixel_values" not in images:
        yield from images.items()
        return
    if is_batch(model, images):
        each = images_of(model, images)
    elif isinstance(images, (*ONE_IMAGE, Tensor, np.ndarray, Mapping)):
        each = iter((images,))
    else:
        raise ImageError(
            say(
                "images={images} is no image and no sequence of them; give paths, bytes, "
                "Pillow images or tensors, such as ['cat.jpg', 'dog.jpg'].",
                images=shorten(repr(images)),
            )
        )
    yield from _with_names(each)


def image_count(model: Model, images: Any) -> int:
    """Return how many images `name_images` yields; 0 where only going through them tells."""
    if isinstance(images, Mapping):
        return 0 if "pixel_values" in images else len(images)
    if not is_batch(model, images):
        return 1
    if isinstance(images, list | tuple) and any(is_batch(model, each) for each in images):
        return 0  # batches, or images and their labels
    is_counted = hasattr(images, "__getitem__") and hasattr(images, "__len__")
    return len(images) if is_counted and not isinstance(images, str) else 0


def named(images: Iterable[Any]) -> dict[str, Any]:
    """Return images by their names; a name's second use gets a number."""
    return dict(_with_names(images))


def _with_names(images: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    uses: Counter[str] = Counter()
    known = set[str]()
    for place, image in enumerate(images, start=1):
        plain = name = _name(image) or say("image {index}", index=place)
        while name in known:  # from the last number on: 100,000 can have one name
            uses[plain] += 1
            name = f"{plain} ({uses[plain] + 1})"
        known.add(name)
        yield name, image


def _name(image: Any) -> str:
    if isinstance(image, InputImage | ImageUrl):
        return image.name
    if is_url(image):
        return ImageUrl(image).name
    if isinstance(image, Image.Image):
        return Path(str(getattr(image, "filename", ""))).name
    return Path(image).name if isinstance(image, str | os.PathLike) else ""
