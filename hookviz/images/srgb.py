"""Convert a Pillow image of any mode to 8-bit sRGB and opacity: depth, colour space, profile."""

import logging
import struct
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms, TiffImagePlugin

from hookviz.errors import shorten

_log = logging.getLogger(__name__)
_DAMAGE = (ArithmeticError, EOFError, LookupError, OSError, SyntaxError, TypeError, ValueError)
# Warning: Pillow warns of damaged EXIF data, and Python can be told to raise that
BROKEN_METADATA = (*_DAMAGE, struct.error, ImageCms.PyCMSError, Warning)
"""What Pillow raises on metadata that somebody broke."""


def split(image: Image.Image) -> tuple[Image.Image, Image.Image | None]:
    """Split into colours (mode L, RGB, CMYK or LAB) and opacity (mode L) if some pixel lacks it."""
    if image.mode.startswith(("I", "F")):
        return _scaled_grey(image)
    if image.has_transparency_data:
        image = image.convert("LA" if image.mode in {"1", "L", "LA", "La"} else "RGBA")
        alpha = image.getchannel("A")
        opaque = alpha.getextrema() == (255, 255)
        return image.convert(image.mode[:-1]), None if opaque else alpha
    if image.mode in {"L", "RGB", "CMYK", "LAB"}:
        return image, None
    return image.convert("L" if image.mode == "1" else "RGB"), None


def _scaled_grey(image: Image.Image) -> tuple[Image.Image, Image.Image | None]:
    """Scale grey of 12, 16 or 32 bits to 8-bit levels, with opacity if a grey is transparent."""
    values: NDArray[Any] = np.asarray(image)
    tags = getattr(image, "tag_v2", {})
    key = image.info.get("transparency")
    alpha = None if key is None else Image.fromarray(np.where(values == key, 0, 255).astype("u1"))
    deep = image.mode.startswith("I;16")
    if deep and tags.get(TiffImagePlugin.BITSPERSAMPLE) != (12,):
        levels = (values // 257 + (values % 257 > 128)).astype(np.uint8)  # round(value / 257)
    else:
        black, white = (0.0, 4095.0) if deep else _range(values)
        scaled = np.nan_to_num(values.astype(float), nan=black, posinf=white, neginf=black)
        scaled -= black
        scaled *= 255 / ((white - black) or 1)
        levels = np.rint(scaled.clip(0, 255)).astype(np.uint8)
    if tags.get(TiffImagePlugin.PHOTOMETRIC_INTERPRETATION) == 0:
        levels = 255 - levels  # "WhiteIsZero", which Pillow inverts in 8 bits only
    return Image.fromarray(levels), alpha


def _range(values: NDArray[Any]) -> tuple[float, float]:
    """Return which of 32-bit `values`, ``(H, W)``, to show as black and as white.

    Whole numbers count as 0…65535; fractions as 0…1, 0…255 or 0…65535, the first that holds them
    all. Where none does, the least value is black and the greatest white.
    """
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    whites = (65535.0,) if np.issubdtype(values.dtype, np.integer) else (1.0, 255.0, 65535.0)
    fitting = [white for white in whites if low >= 0 and high <= white]
    return (0.0, fitting[0]) if fitting else (low, high)


def to_srgb(image: Image.Image, icc: bytes | None, name: str) -> Image.Image:
    """Convert a Pillow image of mode L, RGB, CMYK or LAB to sRGB, by its profile if valid."""
    if image.mode == "LAB":
        spaces = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
        return ImageCms.buildTransform(*spaces, "LAB", "RGB").apply(image)
    if icc:
        try:
            return _by_profile(image, icc)
        # An image with a profile that nobody can use still has its colours, a little off at worst.
        except BROKEN_METADATA as error:
            _log.info("%r: ICC profile ignored: %s", shorten(name), error)
    return image if image.mode == "RGB" else image.convert("RGB")


def _by_profile(image: Image.Image, icc: bytes) -> Image.Image:
    profile = ImageCms.ImageCmsProfile(BytesIO(icc))
    space = profile.profile.xcolor_space.strip()
    mode = {"GRAY": "L", "RGB": "RGB", "CMYK": "CMYK"}.get(space)
    if mode == "RGB" and image.mode == "L":
        image = image.convert("RGB")
    if mode != image.mode:
        raise ValueError(f"it is for {space}, the image is {image.mode}")
    # lcms shortens curves of grey to 33 points for speed, which is too coarse in the shadows
    flags = ImageCms.Flags.NOOPTIMIZE if mode == "L" else ImageCms.Flags.NONE
    srgb = ImageCms.createProfile("sRGB")
    transform = ImageCms.buildTransform(profile, srgb, mode, "RGB", flags=flags)
    if mode == "RGB":
        # Most profiles are sRGB itself: leave those pixels as they are, without rounding errors.
        axis = np.arange(0, 256, 17, dtype=np.uint8)
        lattice = np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(64, 64, 3)
        change = np.asarray(transform.apply(Image.fromarray(lattice))).astype(int) - lattice
        if np.abs(change).max() <= 1:
            return image
    return transform.apply(image)
