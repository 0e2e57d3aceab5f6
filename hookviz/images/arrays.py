"""Take a picture, or a tensor that is an input already, from an array or an image processor."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from hookviz.errors import ImageError, shorten
from hookviz.language.saying import joined, say

Array = np.ndarray[Any, Any] | Tensor | Mapping[str, Any]
ARRAYS = (np.ndarray, Tensor, Mapping)

_CHANNELS = (1, 3, 4)
_LEAST_SIDE = 8
_ROUNDING = 1e-4  # by which floats may leave 0…1, as after a resize
_KEY = "pixel_values"


def picture_or_tensor(value: Array) -> Image.Image | Tensor:
    """Return a picture as a Pillow image, and an input as a tensor.

    Pictures are whole numbers, ``(H, W)``, ``(H, W, C)`` or ``(C, H, W)`` of 1, 3 or 4 channels,
    and arrays of floats, ``(H, W)`` or ``(H, W, C)`` in 0…1. Float tensors, other arrays of
    floats, and ``pixel_values`` in a dictionary, as Hugging Face's processors return it, are inputs
    and become tensors of the same values.

    Raises:
        ImageError: it is a batch of several pictures, or can't be told to be one or the other.
    """
    if isinstance(value, Mapping):
        return picture_or_tensor(_pixel_values(value))
    if isinstance(value, Tensor):
        if not is_picture(value):
            return value
        pixels = _one(value.numpy(force=True), value)
        if pixels.ndim == 3 and pixels.shape[0] in _CHANNELS:
            pixels = np.moveaxis(pixels, 0, -1)
        return _picture(pixels, value)
    if value.dtype.kind not in "buif" or not value.size:
        raise _refused(value, say("it holds no numbers"))
    if value.dtype.kind != "f" or value.ndim == 2:
        return _picture(_channels_last(_one(value, value), value), value)
    single = value[0] if value.ndim == 4 and len(value) == 1 else value
    if single.ndim == 3 and _channels_last(single, value) is single and _has_channels(single):
        return _picture(single, value)
    tensor: Tensor = tensor_of(value)
    return tensor


def picture_of(value: Array) -> Image.Image:
    """Return the picture in an array as a Pillow image.

    Raises:
        ImageError: it is none.
    """
    picture = picture_or_tensor(value)
    if isinstance(picture, Tensor):
        raise ImageError(
            say(
                "A float tensor of {shape} is an input already, not a picture: give it to "
                "hookviz.capture, which uses it as it is.",
                shape=tuple(picture.shape),
            )
        )
    return picture


def tensor_of(value: Any) -> Any:
    """Return the output of an image processor as a tensor; anything but an array unchanged."""
    if isinstance(value, Mapping):
        value = _pixel_values(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "buif":
        kind = value.dtype.newbyteorder("=") if value.itemsize <= 8 else np.dtype(np.float64)
        return torch.from_numpy(np.array(value, kind))
    return value


def is_picture(value: Any) -> bool:
    """Return whether a tensor is a picture, uint8, which has yet to be made an input."""
    if not isinstance(value, Tensor) or value.dtype != torch.uint8:
        return False
    return value.layout == torch.strided and not value.is_meta and not value.is_nested


def is_batch(tensor: Tensor) -> bool:
    """Return whether a tensor holds several images."""
    return tensor.dim() == 4 and not tensor.is_nested and len(tensor) > 1 and tensor.numel() > 0


def several(shape: tuple[int, ...]) -> str:
    """Return the words for a batch of images, with the function that takes it."""
    return say(
        "a batch of {count:,} images, {shape}; hookviz.capture(model, images) takes them "
        "all, and images[0] is one",
        count=shape[0],
        shape=shape,
    )


def _pixel_values(value: Mapping[str, Any]) -> Array:
    if _KEY not in value:
        raise ImageError(
            say(
                "A dictionary with {keys} has no image in it; a processor's has {key!r}.",
                keys=joined(shorten(repr(key), 40) for key in list(value)[:5]) or "nothing",
                key=_KEY,
            )
        )
    images = value[_KEY]
    if isinstance(images, list | tuple):
        if len(images) != 1:
            raise ImageError(say("The input is {problem}.", problem=several((len(images),))))
        images = images[0]
    if isinstance(images, Tensor):
        return images
    try:
        return np.asarray(images)
    except ValueError:  # rows of several lengths
        raise _refused(np.empty(0, object), say("it holds no numbers")) from None


def _one(value: NDArray[Any], original: Any) -> NDArray[Any]:
    """Return the one picture of a batch."""
    if value.ndim != 4:
        return value
    if len(value) != 1:
        raise ImageError(say("The input is {problem}.", problem=several(tuple(original.shape))))
    single: NDArray[Any] = value[0]
    return single


def _has_channels(value: NDArray[Any]) -> bool:
    return value.ndim == 3 and value.shape[2] in _CHANNELS


def _channels_last(value: NDArray[Any], original: Any) -> NDArray[Any]:
    """Return ``(H, W, C)`` of ``(C, H, W)``, and any other array unchanged."""
    if value.ndim != 3 or value.shape[0] not in _CHANNELS:
        return value
    if _has_channels(value) and value.shape[0] != 1:
        reason = say("it can be (C, H, W) or (H, W, C); give it as a tensor, or as a Pillow image")
        raise _refused(original, reason)
    return value if _has_channels(value) else np.moveaxis(value, 0, -1)


def _picture(value: NDArray[Any], original: Any) -> Image.Image:
    if value.ndim == 3 and value.shape[2] == 1:
        value = value[..., 0]
    if value.ndim != 2 and not _has_channels(value):
        raise _refused(original, say("it has no rows and columns of 1, 3 or 4 channels"))
    if min(value.shape[:2]) < _LEAST_SIDE:
        raise _refused(original, say("it is a table rather than a picture"))
    value = np.ascontiguousarray(value, value.dtype.newbyteorder("="))
    if value.dtype == bool:
        value = value.astype(np.uint8) * 255
    if value.dtype != np.uint8:
        value = _deep_grey(value) if value.ndim == 2 else _colour_levels(value, original)
    return Image.fromarray(value)


def _deep_grey(value: NDArray[Any]) -> NDArray[Any]:
    """Return greys as Pillow has them, whose window is chosen as that of a file."""
    if value.dtype == np.uint16:
        return value
    limits = np.iinfo(np.int32)
    is_whole = value.dtype.kind in "iu" and value.min() >= limits.min and value.max() <= limits.max
    with np.errstate(over="ignore"):  # which becomes infinite is white
        return value.astype(np.int32 if is_whole else np.float32)


def _colour_levels(value: NDArray[Any], original: Any) -> NDArray[np.uint8]:
    """Return colours of 16 bits, or of floats in 0…1, in 8 bits, rounded."""
    if value.dtype == np.uint16:
        return np.rint(value / 257).astype(np.uint8)
    if value.dtype.kind != "f":
        raise _refused(original, say("colours are uint8, uint16 or floats in 0…1"))
    low, high = float(value.min()), float(value.max())
    if not (low >= -_ROUNDING and high <= 1 + _ROUNDING):
        reach = say(
            "its values reach from {low:.4g} to {high:.4g}, and colours are floats in 0…1 or uint8",
            low=low,
            high=high,
        )
        raise _refused(original, reach)
    levels: NDArray[np.uint8] = np.rint(value.astype(float).clip(0, 1) * 255).astype(np.uint8)
    return levels


def _refused(original: Any, reason: str) -> ImageError:
    kind = "tensor" if isinstance(original, Tensor) else "array"
    return ImageError(
        say(
            "The {kind} of shape {shape} and {dtype} can't be taken as an image: {reason}. Give "
            "uint8 or floats in 0…1 as (H, W, 3), or a float tensor of (C, H, W) that the network "
            "takes as it is.",
            kind=kind,
            shape=tuple(original.shape),
            dtype=original.dtype,
            reason=reason,
        )
    )
