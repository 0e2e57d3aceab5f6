"""Tell a batch from one image, take the images out of whatever holds them, and name them.

They come from lists, loaders, datasets, folders and tensors. A name is a file's, or ``"image 3"``.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sized
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset

from hookviz.errors import ImageError, shorten
from hookviz.hooking.forward_pass import stated_shape
from hookviz.images.arrays import is_picture
from hookviz.images.files import ImageUrl, expand, is_url
from hookviz.language.saying import say
from hookviz.paths import path_of
from hookviz.types import InputImage, Model, ModelInput


class _Indexed(Protocol):
    """What torch calls a map-style dataset: items by their number."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...


Images = Mapping[str, Any] | Iterable[Any] | _Indexed | os.PathLike[str]
"""Several images, by name or one after another, or a folder."""

ONE_IMAGE = (str, bytes, os.PathLike, Image.Image, InputImage, ModelInput, ImageUrl)
"""What is one image, whatever it can be gone through by."""


def is_batch(model: Model, images: Any) -> bool:
    """Return whether `images` are several for `capture`, be it a list of one or a folder."""
    if isinstance(images, Mapping):
        values = images.get("pixel_values")
        return isinstance(values, list | tuple | Tensor | np.ndarray) and (
            len(values) > 1 and (isinstance(values, list | tuple) or _has_rows(model, values))
        )
    if isinstance(images, Tensor | np.ndarray):
        return _has_rows(model, images) and len(images) != 1
    if isinstance(images, ONE_IMAGE):
        return model.read is None and _is_folder(images)
    return _items(images) is not None


def images_of(model: Model, images: Any, *, expand_folders: bool = True) -> Iterator[Any]:
    """Yield one image after another of whatever `is_batch` says holds several.

    Of a dataset's and a loader's items ``(x, y)`` the first part is taken, of a loader's batches
    every row. Without `expand_folders` a folder among the items is yielded itself.
    """
    if isinstance(images, str | os.PathLike):
        yield from expand([os.fspath(images)])
        return
    if isinstance(images, Mapping):
        images = images["pixel_values"]
    if isinstance(images, Tensor | np.ndarray):
        yield from images
        return
    if isinstance(images, list | tuple) and _is_labelled(images):
        images = images[:1]
    items = _items(images)
    for item in () if items is None else items:
        image = item[0] if isinstance(item, list | tuple) and item else item
        may_expand = expand_folders or not isinstance(image, str | os.PathLike)
        if may_expand and is_batch(model, image):
            yield from images_of(model, image, expand_folders=expand_folders)
        else:
            yield image


def labelled_images(model: Model, items: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each image of a dataset or a loader, whose items are ``(x, y)``, with its label.

    Raises:
        ImageError: an item is no pair.
    """
    pairs = _items(items)
    for item in (None,) if pairs is None else pairs:
        if not isinstance(item, list | tuple) or len(item) < 2:
            raise ImageError(
                say(
                    "{item} is no image with its label; give a dataset or a loader of pairs "
                    "(image, label), or a folder with a folder for each class.",
                    item=shorten(repr(items if item is None else item)),
                )
            )
        image, label = item[:2]
        is_array = isinstance(image, Tensor | np.ndarray)
        if is_batch(model, image) or (is_array and _has_rows(model, image)):
            yield from zip(images_of(model, image), label, strict=True)
        else:
            yield image, label


def _is_folder(image: Any) -> bool:
    if not isinstance(image, str | os.PathLike) or is_url(image):
        return False
    try:
        return path_of(image).is_dir()
    except (OSError, ValueError):  # too long a name, or a zero byte in it
        return False


def _has_rows(model: Model, images: Any) -> bool:
    """Return whether an array has one dimension more than an image of the model's."""
    if getattr(images, "is_nested", False) or (isinstance(images, Tensor) and images.is_sparse):
        return False
    dimensions = len(stated_shape(model)) + 1
    if isinstance(images, Tensor) and not is_picture(images):
        return bool(images.ndim == dimensions)
    return bool(images.ndim == max(dimensions, 4))  # pictures are (N, H, W, C)


def _items(images: Any) -> Iterable[Any] | None:
    """Return what is gone through; None of what can't be."""
    if isinstance(images, Iterable) and not isinstance(images, nn.Module):
        return images
    if hasattr(images, "__getitem__") and hasattr(images, "__len__"):  # a dataset of torch's
        return (images[place] for place in range(len(images)))
    return None


def _is_labelled(pair: list[Any] | tuple[Any, ...]) -> bool:
    """Return whether it is a loader's ``(images, labels)``, and no list of images."""
    first, *rest = pair or [None]
    return (
        isinstance(first, Tensor)
        and bool(rest)
        and all(
            isinstance(label, int | float | Mapping)
            or (isinstance(label, Tensor) and label.ndim < min(3, first.ndim))
            for label in rest
        )
    )


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
    if isinstance(images, str | os.PathLike):  # a folder
        return len(expand([os.fspath(images)]))
    if isinstance(images, DataLoader):
        return _count_of_loader(images)
    is_counted = hasattr(images, "__getitem__") and hasattr(images, "__len__")
    return len(images) if is_counted else 0


def _count_of_loader(loader: DataLoader[Any]) -> int:
    """Return how many images a loader yields; 0 where its dataset has no length."""
    if isinstance(loader.dataset, IterableDataset) or loader.batch_size is None:
        return 0
    every = len(cast(Sized, loader.sampler))
    return every - every % loader.batch_size if loader.drop_last else every


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
