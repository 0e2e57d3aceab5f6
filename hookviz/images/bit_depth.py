"""Bring grey of 12, 16 or 32 bits and colours of 16 bits a channel to 8 bits, rounded.

Of 16-bit colours Pillow keeps the high byte alone, so they are decoded twice.
"""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, TiffImagePlugin
from PIL.ImageFile import ImageFile

_BANDS = ("R", "G", "B", "A")
_FOREIGN = "B" if sys.byteorder == "little" else "L"
OTHER_BYTE: dict[Any, str] = {
    f"{mode};16{end}": f"{mode};16{other}"
    for mode in ("RGB", "RGBA", "RGBX", "CMYK", *_BANDS)
    for end, other in (("B", "L"), ("L", "B"), ("N", _FOREIGN))
} | {"LA;16B": "RGBA"}  # there is no LA;16L; as RGBA come high and low grey, high and low opacity
"""From how values are stored to how Pillow is told to keep their other byte."""


def raw_mode_of(args: Any) -> Any:
    """Return how the values are stored, from what Pillow hands its decoder."""
    return args[0] if isinstance(args, tuple) else args


def rounded(image: ImageFile, twin: ImageFile, raw_mode: str) -> Image.Image:
    """Round a 16-bit colour image to 8 bits, from its high bytes and its low bytes.

    Pillow keeps the high byte of each value only. With value = 256 high + low, the nearest 8-bit
    level value / 257 is high + round((low - high) / 257), and the correction is -1, 0 or 1.
    """
    image.load()
    twin.load()
    high, low = np.asarray(image), np.asarray(twin)
    if raw_mode == "LA;16B":
        low = low[..., [1, 1, 1, 3]]
    levels = high + ((low > high) & (low - high > 128)) - ((high > low) & (high - low > 128))
    levelled = Image.fromarray(levels, image.mode)
    levelled.info = dict(image.info)
    key = levelled.info.pop("transparency", None)
    if key is not None:  # a colour of 16 bits per channel that counts as transparent
        same = (high == [value >> 8 for value in key]) & (low == [value & 255 for value in key])
        levelled.putalpha(Image.fromarray(np.where(same.all(axis=2), 0, 255).astype(np.uint8)))
    return levelled


def scaled_grey(image: Image.Image) -> tuple[Image.Image, Image.Image | None]:
    """Scale grey of 12, 16 or 32 bits to 8-bit levels, with opacity if a grey is transparent."""
    values: NDArray[Any] = np.asarray(image)
    tags = getattr(image, "tag_v2", {})
    key = image.info.get("transparency")
    alpha = None if key is None else Image.fromarray(np.where(values == key, 0, 255).astype("u1"))
    deep = image.mode.startswith("I;16")
    if deep and tags.get(TiffImagePlugin.BITSPERSAMPLE) != (12,):
        levels = (values // 257 + (values % 257 > 128)).astype(np.uint8)  # round(value / 257)
    else:
        black, white = (0.0, 4095.0) if deep else _black_and_white_point(values)
        scaled = np.nan_to_num(values.astype(float), nan=black, posinf=white, neginf=black)
        scaled -= black
        scaled *= 255 / ((white - black) or 1)
        levels = np.rint(scaled.clip(0, 255)).astype(np.uint8)
    if tags.get(TiffImagePlugin.PHOTOMETRIC_INTERPRETATION) == 0:
        levels = 255 - levels  # "WhiteIsZero", which Pillow inverts in 8 bits only
    return Image.fromarray(levels), alpha


def _black_and_white_point(values: NDArray[Any]) -> tuple[float, float]:
    """Return which of 32-bit `values`, ``(H, W)``, to show as black and as white.

    Whole numbers count as 0…65535; fractions as 0…1, 0…255 or 0…65535, the first that holds them
    all. Where none does, the least value is black and the greatest white.
    """
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    whites = (65535.0,) if np.issubdtype(values.dtype, np.integer) else (1.0, 255.0, 65535.0)
    fitting = [white for white in whites if low >= 0 and high <= white]
    return (0.0, fitting[0]) if fitting else (low, high)
