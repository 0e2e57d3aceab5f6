"""Decode untrusted bytes to upright RGB pixels, or refuse them; without torch.

Pillow decodes; this file keeps it within the pixel limit, and puts right what it leaves to its
caller: orientation, depth, colour space and transparency. `formats` says which formats it may try.
"""

import logging
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, TiffImagePlugin
from PIL.AvifImagePlugin import AvifImageFile
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile

from hookviz.errors import ImageError, shorten
from hookviz.images.animations import chosen, frame_count, reader_of_frames
from hookviz.images.bit_depth import OTHER_BYTE, raw_mode_of, rounded
from hookviz.images.formats import FORMATS, HEAD, find_reader
from hookviz.images.srgb import BROKEN_METADATA, split_alpha, to_srgb
from hookviz.language.saying import say
from hookviz.reader.endings import quoted

Pixels = NDArray[np.uint8]
RGB = tuple[int, int, int]

WHITE: RGB = (255, 255, 255)

_BYTES, DEEP_BYTES = 20, 40  # that a pixel takes at most, of 8 bits a value and of more
_TILE = TiffImagePlugin.TILEWIDTH, TiffImagePlugin.TILELENGTH

_log = logging.getLogger(__name__)


def _new(shape: tuple[int, ...]) -> Pixels:
    return np.empty(shape, np.uint8)


@dataclass(frozen=True, slots=True)
class Limits:
    """How an image is decoded.

    Attributes:
        pixels: that it may have.
        background: RGB, what shows through where it is transparent.
        make: makes the array that is filled, of a shape.
    """

    pixels: int
    background: RGB = WHITE
    make: Callable[[tuple[int, ...]], Pixels] = _new


@dataclass(frozen=True, slots=True)
class Head:
    """What is known of an image before it is decoded.

    Attributes:
        pixels: how many it has.
        memory: bytes that decoding it takes at most, the file's own not among them.
    """

    pixels: int
    memory: int


def read_head(data: bytes, name: str, most: int) -> Head:
    """Return what the header tells; no pixel is decoded.

    Args:
        data: a whole file.
        name: what to call it in messages.
        most: pixels that an image may have.

    Raises:
        ImageError: as `decode`, so far as the head shows it.
    """
    reader = find_reader(data[:HEAD], name)
    with readable(name, most):
        image = _opened(data, reader, name, most)
        pixels = image.width * image.height
        return Head(pixels, pixels * (DEEP_BYTES if _is_deep(image) else _BYTES))


def decode(data: bytes, name: str, limits: Limits) -> Pixels:
    """Decode the first frame, as `hookviz.images.reading.decode` says.

    Raises:
        ImageError: it can't be decoded within the limits.
    """
    reader = find_reader(data[:HEAD], name)
    with readable(name, limits.pixels):
        image = _opened(data, reader, name, limits.pixels)
        if isinstance(image, JpegImageFile):
            _check_scans(data, image, name, limits.pixels)
        raw_mode = _raw_mode(image)
        if raw_mode in {"L;2", "L;4"} and "transparency" in image.info:
            # Pillow scales grey of 2 or 4 bits to 8, but not the grey that counts as transparent
            image.info["transparency"] *= 85 if raw_mode == "L;2" else 17
        if raw_mode not in OTHER_BYTE:
            return pixels_of(image, name, limits)
        twin = reader(BytesIO(data))
        for index, tile in enumerate(twin.tile):
            other = OTHER_BYTE[raw_mode_of(tile.args)]
            whole = (other, *tile.args[1:]) if isinstance(tile.args, tuple) else other
            twin.tile[index] = tile._replace(args=whole)
        return pixels_of(rounded(image, twin, raw_mode), name, limits)


def decode_frames(data: bytes, name: str, count: int, limits: Limits) -> list[Pixels]:
    """Decode `count` frames of an animation in even steps, as `decode` does its first.

    Of few frames some are taken again. Where all together have more pixels than one image may
    have, the first so many stand for all: what a frame shows can have been drawn in any before, so
    that each is decoded.

    Raises:
        ImageError: one is damaged.
    """
    found: dict[int, Pixels] = {}
    with readable(name, limits.pixels), reader_of_frames(data)(BytesIO(data)) as image:
        _check_size(name, limits.pixels, image.width, image.height)
        most = limits.pixels // (image.width * image.height)
        wanted = chosen(max(1, min(frame_count(data), most)), count)
        for number in range(max(wanted) + 1):
            image.seek(number)
            if number in wanted:
                found[number] = pixels_of(image.copy(), name, limits)
    return [found[number] for number in wanted]


@contextmanager
def readable(name: str, most: int) -> Iterator[None]:
    """Turn everything that Pillow can raise in the block into an `ImageError`."""
    try:
        yield
    except (ImageError, MemoryError):
        raise
    except Image.DecompressionBombError as error:
        raise ImageError(_too_large(name, say("has too many pixels"), most)) from error
    # On broken bytes Pillow's readers raise whatever their line of code happens to raise: OSError,
    # SyntaxError, struct.error, zlib.error, MemoryError, … All of it says the same about the file.
    except Exception as error:
        reason = shorten(str(error), 120) or type(error).__name__
        raise ImageError(
            say(
                "{file} is truncated, damaged, or of a kind that can't be read ({reason}). "
                "Get the file again, or save the picture anew as {formats}.",
                file=quoted(name),
                reason=reason,
                formats=say(FORMATS),
            )
        ) from error


def _opened(data: bytes, reader: type[ImageFile], name: str, most: int) -> ImageFile:
    """Open the image by its header, and refuse more pixels than are allowed: no bomb is decoded."""
    if reader is AvifImageFile:
        # libavif refuses large images as if they were damaged; the size is in its "ispe" boxes
        # (ISO/IEC 23008-12, 6.5.3), near the start.
        for box in re.finditer(rb"ispe\0{4}(.{8})", data[:65536], re.DOTALL):
            _check_size(name, most, *struct.unpack(">II", box[1]))
    image = reader(BytesIO(data))
    _check_size(name, most, image.width, image.height)
    # A TIFF is decoded tile by tile, and a tile can be larger than its image.
    tags = getattr(image, "tag_v2", {})
    _check_size(name, most, *(tags.get(tag, 1) for tag in _TILE))
    return image


def _raw_mode(image: ImageFile) -> Any:
    """Return how the values are stored; empty where nothing is."""
    return raw_mode_of(image.tile[0].args) if image.tile else ""


def _is_deep(image: ImageFile) -> bool:
    """Return whether a value has more than 8 bits."""
    return image.mode.startswith(("I", "F")) or _raw_mode(image) in OTHER_BYTE


def _check_size(name: str, most: int, width: Any, height: Any) -> None:
    if width * height > most:
        size = say(
            "decodes to {width} × {height} pixels, {megapixels:,.1f} million",
            width=width,
            height=height,
            megapixels=width * height / 1e6,
        )
        raise ImageError(_too_large(name, size, most))


def _too_large(name: str, size: str, most: int) -> str:
    limit = say("{megapixels:,.1f} million (HOOKVIZ_MAX_PIXELS)", megapixels=most / 1e6)
    return say(
        "{file} {size}. HookViz reads up to {limit}; give a smaller version.",
        file=quoted(name),
        size=size,
        limit=limit,
    )


def _check_scans(data: bytes, image: ImageFile, name: str, most: int) -> None:
    """Refuse a JPEG that makes the decoder pass over its pixels again and again, scan by scan."""
    scans = data.count(b"\xff\xda")  # a marker, never part of coded data; about ten are usual
    if scans > 100 and scans * image.width * image.height > 20 * most:
        raise ImageError(
            say(
                "{file} has {scans} scans, too many; save it anew as a PNG.",
                file=quoted(name),
                scans=scans,
            )
        )


def pixels_of(image: Image.Image, name: str, limits: Limits) -> Pixels:
    """Return upright sRGB ``(H, W, 3)`` of a Pillow image of any mode, which stays as it is.

    Raises:
        ImageError: it has too many pixels.
    """
    _check_size(name, limits.pixels, image.width, image.height)
    image.load()
    colour, alpha = split_alpha(_upright(image, name))
    rgb = to_srgb(colour, image.info.get("icc_profile"), name)
    if alpha is not None:
        rgb = Image.composite(rgb, Image.new("RGB", rgb.size, limits.background), alpha)
    pixels = limits.make((rgb.height, rgb.width, 3))
    step = max(1, 2**22 // rgb.width)  # band by band: at once, Pillow takes twice the memory
    for top in range(0, rgb.height, step):
        bottom = min(top + step, rgb.height)
        whole = bottom - top == rgb.height  # `crop` could warn of its size
        pixels[top:bottom] = np.asarray(rgb if whole else rgb.crop((0, top, rgb.width, bottom)))
    return pixels


def _upright(image: Image.Image, name: str) -> Image.Image:
    try:
        if image.getexif().get(0x0112, 1) == 1:
            return image  # `exif_transpose` would make a copy
        return ImageOps.exif_transpose(image)
    # Broken EXIF data say nothing about the pixels: like browsers, show them as they are stored.
    except BROKEN_METADATA as error:
        _log.info("%r: EXIF data ignored: %s", shorten(name), error)
        return image
