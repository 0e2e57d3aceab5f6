"""Convert a Pillow image of 8 bits to sRGB and opacity: colour space, profile."""

import logging
import struct
from io import BytesIO

import numpy as np
from PIL import Image, ImageCms

from hookviz.errors import shorten

_log = logging.getLogger(__name__)
_DAMAGE = (ArithmeticError, EOFError, LookupError, OSError, SyntaxError, TypeError, ValueError)
# Warning: Pillow warns of damaged EXIF data, and Python can be told to raise that
BROKEN_METADATA = (*_DAMAGE, struct.error, ImageCms.PyCMSError, Warning)
"""What Pillow raises on metadata that somebody broke."""


def split_alpha(image: Image.Image) -> tuple[Image.Image, Image.Image | None]:
    """Split into colours (mode L, RGB, CMYK or LAB) and opacity (mode L) if some pixel lacks it."""
    if image.has_transparency_data:
        image = image.convert("LA" if image.mode in {"1", "L", "LA", "La"} else "RGBA")
        alpha = image.getchannel("A")
        opaque = alpha.getextrema() == (255, 255)
        return image.convert(image.mode[:-1]), None if opaque else alpha
    if image.mode in {"L", "RGB", "CMYK", "LAB"}:
        return image, None
    return image.convert("L" if image.mode == "1" else "RGB"), None


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
