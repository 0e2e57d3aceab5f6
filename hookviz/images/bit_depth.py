"""Bring grey of 12, 16 or 32 bits to 8 bits by a window, and colours of 16 bits by rounding.

Of 16-bit colours Pillow keeps the high byte alone, so they are decoded twice.
"""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, TiffImagePlugin
from PIL.ImageFile import ImageFile

from hookviz.images.choices import Window

PERCENTILES = (0.5, 99.5)
"""Of the values of a deep grey, which the window reaches from and to where nobody chose one."""

_WHOLE: Window = (32767.5, 65535.0)  # of 16 bits
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


def rounded(image: ImageFile, twin: ImageFile) -> Image.Image:
    """Round a 16-bit colour image to 8 bits, from its high bytes and its low bytes.

    Pillow keeps the high byte of each value only. With value = 256 high + low, the nearest 8-bit
    level value / 257 is high + round((low - high) / 257), and the correction is -1, 0 or 1.
    """
    image.load()
    twin.load()
    high, low = np.asarray(image), np.asarray(twin)
    levels = high + ((low > high) & (low - high > 128)) - ((high > low) & (high - low > 128))
    levelled = Image.fromarray(levels, image.mode)
    levelled.info = dict(image.info)
    key = levelled.info.pop("transparency", None)
    if key is not None:  # a colour of 16 bits per channel that counts as transparent
        same = (high == [value >> 8 for value in key]) & (low == [value & 255 for value in key])
        levelled.putalpha(Image.fromarray(np.where(same.all(axis=2), 0, 255).astype(np.uint8)))
    return levelled


def scaled_grey_and_opacity(twin: ImageFile, window: Window | None) -> tuple[Image.Image, Window]:
    """Scale grey of 16 bits beside opacity of 16 bits, stored as `OTHER_BYTE` has it."""
    twin.load()
    stored = np.asarray(twin).astype(np.uint16)
    values, opacity = (stored[..., at] * 256 + stored[..., at + 1] for at in (0, 2))
    chosen = window or window_of(values[opacity > 0])
    pairs = np.dstack([in_window(values, chosen), in_window(opacity, _WHOLE)])
    return Image.fromarray(pairs, "LA"), chosen


def scaled_grey(
    image: Image.Image, window: Window | None
) -> tuple[Image.Image, Image.Image | None, Window]:
    """Scale grey of 12, 16 or 32 bits to 8-bit levels, with opacity if a grey is transparent.

    The levels are those of `window`, else of `window_of` all values, which is returned.
    """
    values: NDArray[Any] = np.asarray(image)
    key = image.info.get("transparency")
    alpha = None if key is None else Image.fromarray(np.where(values == key, 0, 255).astype("u1"))
    chosen = window or window_of(values if key is None else values[values != key])
    levels = in_window(values, chosen)
    tags = getattr(image, "tag_v2", {})
    if tags.get(TiffImagePlugin.PHOTOMETRIC_INTERPRETATION) == 0:
        levels = 255 - levels  # "WhiteIsZero", which Pillow inverts in 8 bits only
    return Image.fromarray(levels), alpha, chosen


def window_of(values: NDArray[Any]) -> Window:
    """Return level and width from the 0.5th to the 99.5th percentile of the finite values.

    Where both are equal, as in a mask, from the least to the greatest; 1 wide where all are equal.
    """
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.5, 1.0
    ends = np.percentile(finite.astype(float), PERCENTILES)
    low, high = ends if ends[0] < ends[1] else (finite.min(), finite.max())
    width = (float(high) - float(low)) or 1.0
    return float(low) + width / 2, width


def in_window(values: NDArray[Any], window: Window) -> NDArray[np.uint8]:
    """Return levels, 0 up to the window's lower end, 255 from its upper on; NaN is 0."""
    level, width = window
    black, white = level - width / 2, level + width / 2
    scaled = np.nan_to_num(values.astype(float), nan=black, posinf=white, neginf=black)
    scaled -= black
    scaled.clip(0, width, out=scaled)
    scaled /= width  # not times 255 / width, which a narrow window makes infinite
    scaled *= 255
    levels: NDArray[np.uint8] = np.rint(scaled).astype(np.uint8)
    return levels
