"""Decode colour images of 16 bits a channel, of which Pillow keeps the high byte alone."""

import sys
from typing import Any

import numpy as np
from PIL import Image
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
