"""Decode untrusted bytes, a path or a Pillow image to an upright RGB `InputImage`, or refuse it.

Pillow decodes; this file keeps it within the pixel limit, and puts right what it leaves to its
caller: orientation, depth, colour space and transparency. `formats` says which formats it may try.

Over 300 lines: each refusal stands beside the step that it guards, where its order can be checked.
"""

import hashlib
import logging
import os
import re
import struct
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps, TiffImagePlugin
from PIL.AvifImagePlugin import AvifImageFile
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile

from hookviz.errors import ImageError, nearest_names, shorten
from hookviz.images.animations import frame_count, reader_of_frames
from hookviz.images.bit_depth import OTHER_BYTE, raw_mode_of, rounded
from hookviz.images.formats import FORMATS, HEAD, find_reader
from hookviz.images.srgb import BROKEN_METADATA, split_alpha, to_srgb
from hookviz.images.urls import ImageUrl, is_url
from hookviz.language.saying import joined, say
from hookviz.paths import fault_of, path_of
from hookviz.settings import settings
from hookviz.types import InputImage, Pixels

Source = (
    str | os.PathLike[str] | bytes | bytearray | memoryview | Image.Image | InputImage | ImageUrl
)
RGB = tuple[int, int, int]

_log = logging.getLogger(__name__)
_WHITE = (255, 255, 255)
_TILE = TiffImagePlugin.TILEWIDTH, TiffImagePlugin.TILELENGTH


def read(source: Source, *, background: RGB = _WHITE) -> InputImage:
    """Read the image in a file, bytes or a Pillow image; an `InputImage` is returned as it is.

    Args:
        source: a path, a URL such as ``s3://…``, the bytes of an image file, a Pillow image of any
            mode, or an `InputImage`.
        background: RGB in 0…255, what shows through where the image is transparent.

    Raises:
        ImageError: there is no such file, its bytes can't be decoded (see `decode`), or
            `background` is no colour.

    >>> image = hookviz.read_image("assets/samples/cat.jpg")
    >>> image.name, image.pixels.shape  # (H, W, 3)
    ('cat.jpg', (300, 451, 3))
    """
    colour = _colour(background)
    if isinstance(source, InputImage):
        return source
    if isinstance(source, Image.Image):
        name = Path(str(getattr(source, "filename", ""))).name or "image"
        return _guarded(lambda: _pixels_of(source, name, colour), name)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return decode(bytes(source), background=colour)
    if isinstance(source, ImageUrl) or (isinstance(source, str) and is_url(source)):
        url = source if isinstance(source, ImageUrl) else ImageUrl(source)
        return decode(url.read(), url.name, background=colour)
    if isinstance(source, (str, os.PathLike)):
        path = path_of(source)
        return decode(_bytes_of(path), path.name, background=colour)
    raise ImageError(
        say(
            "An image can't be read from {name!r}; give a path, bytes or a picture.",
            name=type(source).__name__,
        )
    )


def decode(data: bytes, name: str = "image", *, background: RGB = _WHITE) -> InputImage:
    """Decode `data` to upright 8-bit sRGB; of an animation, its first frame.

    Of an animation the bytes are kept as they are, for networks that take video.

    EXIF orientation is carried out. A colour profile (ICC) is converted to sRGB; one that is
    broken or belongs to another kind of image is ignored and logged. 16 bits per channel are
    rounded to 8, so that 65535 becomes 255 (in compressed TIFFs stored plane by plane they are cut
    to 8, a difference of one level at most). Grey TIFFs of 32 bits have no agreed white point: see
    `_range`. CMYK without a profile becomes ``(255 - ink) * (255 - black) / 255``. Transparency is
    blended onto `background` linearly in sRGB values, as browsers do.

    Args:
        data: a whole PNG, JPEG, WebP, GIF, BMP, TIFF or AVIF file.
        name: what to call it in messages, for example the file's name.
        background: RGB in 0…255, what shows through where the image is transparent.

    Raises:
        ImageError: `data` is empty, of another format, damaged, or decodes to more pixels than
            ``settings().max_pixels``. No other exception comes from whatever bytes there are.
    """
    colour = _colour(background)
    reader = find_reader(data[:HEAD], name)
    animation = data if frame_count(data) > 1 else b""
    return _guarded(lambda: _decoded(data, reader, name, colour), name, animation)


def decode_frames(data: bytes, name: str, wanted: Collection[int]) -> Mapping[int, InputImage]:
    """Decode frames of an animation, by their numbers from 0, as `decode` does its first.

    Raises:
        ImageError: there is none of a number, or one is damaged.
    """
    found = {}
    with _readable(name), reader_of_frames(data)(BytesIO(data)) as image:
        for number in range(max(wanted, default=-1) + 1):
            image.seek(number)
            if number in wanted:
                frame = image.copy()
                found[number] = _guarded(partial(_pixels_of, frame, name, _WHITE), name)
    return found


def pixel_count(data: bytes, name: str = "image") -> int:
    """Return how many pixels a file's image has by its header; none of them is decoded.

    Raises:
        ImageError: as `decode`, so far as the head shows it.
    """
    reader = find_reader(data[:HEAD], name)
    with _readable(name):
        image = _opened(data, reader, name)
        return image.width * image.height


def _guarded(work: Callable[[], Pixels], name: str, animation: bytes = b"") -> InputImage:
    """Return what `work` returns; everything that Pillow can raise becomes an `ImageError`."""
    with _readable(name):
        pixels = work()
    pixels.setflags(write=False)
    digest = hashlib.blake2b(repr(pixels.shape).encode(), digest_size=16)
    digest.update(pixels.data)
    digest.update(animation)
    return InputImage(pixels, name, digest.hexdigest(), animation)


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Turn everything that Pillow can raise in the block into an `ImageError`."""
    try:
        yield
    except ImageError:
        raise
    except Image.DecompressionBombError as error:
        raise ImageError(_too_large(name, say("has too many pixels"))) from error
    # On broken bytes Pillow's readers raise whatever their line of code happens to raise: OSError,
    # SyntaxError, struct.error, zlib.error, MemoryError, … All of it says the same about the file.
    except Exception as error:
        reason = shorten(str(error), 120) or type(error).__name__
        raise ImageError(
            say(
                "{file} is truncated, damaged, or of a kind that can't be read ({reason}). "
                "Get the file again, or save the picture anew as {formats}.",
                file=_quoted(name),
                reason=reason,
                formats=say(FORMATS),
            )
        ) from error


def _bytes_of(path: Path) -> bytes:
    """Read an image file; what can't be one by its first bytes isn't read any further."""
    try:
        if not path.is_file():  # a device or a pipe could go on for ever
            raise ImageError(_no_file(path))
        with path.open("rb") as file:
            head = file.read(HEAD)
            find_reader(head, path.name)
            return head + file.read()
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise ImageError(
            say("{file} can't be opened: {reason}.", file=_quoted(str(path)), reason=reason)
        ) from error


def _no_file(path: Path) -> str:
    quoted, folder = _quoted(str(path)), path if path.is_dir() else path.parent
    if folder != path and (fault := fault_of(path)):
        return say("{file} is {fault}; give a file with a picture in it.", file=quoted, fault=fault)
    if not folder.is_dir():
        return say("There is no file {file}: its folder doesn't exist.", file=quoted)
    names = [entry.name for entry in islice(folder.iterdir(), 2000)]  # enough to look through
    if folder == path:
        holds = joined(map(_quoted, sorted(names)[:3])) or "nothing"
        return say(
            "{file} is a folder, not an image; it holds {contents}.", file=quoted, contents=holds
        )
    near = " or ".join(map(_quoted, nearest_names(path.name, names)))
    hint = (
        say("Did you mean {name}?", name=near)
        if near
        else say("No name in that folder is like it.")
    )
    return say("There is no image file {file}. {hint}", file=quoted, hint=hint)


def _opened(data: bytes, reader: type[ImageFile], name: str) -> ImageFile:
    """Open the image by its header, and refuse more pixels than are allowed: no bomb is decoded."""
    if reader is AvifImageFile:
        # libavif refuses large images as if they were damaged; the size is in its "ispe" boxes
        # (ISO/IEC 23008-12, 6.5.3), near the start.
        for box in re.finditer(rb"ispe\0{4}(.{8})", data[:65536], re.DOTALL):
            _check_size(name, *struct.unpack(">II", box[1]))
    image = reader(BytesIO(data))
    _check_size(name, image.width, image.height)
    # A TIFF is decoded tile by tile, and a tile can be larger than its image.
    tags = getattr(image, "tag_v2", {})
    _check_size(name, *(tags.get(tag, 1) for tag in _TILE))
    return image


def _decoded(data: bytes, reader: type[ImageFile], name: str, background: RGB) -> Pixels:
    image = _opened(data, reader, name)
    if isinstance(image, JpegImageFile):
        _check_scans(data, image, name)
    raw_mode = raw_mode_of(image.tile[0].args) if image.tile else ""
    if raw_mode in {"L;2", "L;4"} and "transparency" in image.info:
        # Pillow scales grey of 2 or 4 bits to 8, but not the grey that counts as transparent
        image.info["transparency"] *= 85 if raw_mode == "L;2" else 17
    if raw_mode not in OTHER_BYTE:
        return _pixels_of(image, name, background)
    twin = reader(BytesIO(data))
    for index, tile in enumerate(twin.tile):
        other = OTHER_BYTE[raw_mode_of(tile.args)]
        whole = (other, *tile.args[1:]) if isinstance(tile.args, tuple) else other
        twin.tile[index] = tile._replace(args=whole)
    return _pixels_of(rounded(image, twin, raw_mode), name, background)


def _check_size(name: str, width: Any, height: Any) -> None:
    if width * height > settings().max_pixels:
        size = say(
            "decodes to {width} × {height} pixels, {megapixels:,.1f} million",
            width=width,
            height=height,
            megapixels=width * height / 1e6,
        )
        raise ImageError(_too_large(name, size))


def _too_large(name: str, size: str) -> str:
    limit = say(
        "{megapixels:,.1f} million (HOOKVIZ_MAX_PIXELS)", megapixels=settings().max_pixels / 1e6
    )
    return say(
        "{file} {size}. HookViz reads up to {limit}; give a smaller version.",
        file=_quoted(name),
        size=size,
        limit=limit,
    )


def _check_scans(data: bytes, image: ImageFile, name: str) -> None:
    """Refuse a JPEG that makes the decoder pass over its pixels again and again, scan by scan."""
    scans = data.count(b"\xff\xda")  # a marker, never part of coded data; about ten are usual
    if scans > 100 and scans * image.width * image.height > 20 * settings().max_pixels:
        raise ImageError(
            say(
                "{file} has {scans} scans, too many; save it anew as a PNG.",
                file=_quoted(name),
                scans=scans,
            )
        )


def _pixels_of(image: Image.Image, name: str, background: RGB) -> Pixels:
    """Return upright sRGB ``(H, W, 3)`` of a Pillow image of any mode, which stays as it is."""
    _check_size(name, image.width, image.height)
    image.load()
    colour, alpha = split_alpha(_upright(image, name))
    rgb = to_srgb(colour, image.info.get("icc_profile"), name)
    if alpha is not None:
        rgb = Image.composite(rgb, Image.new("RGB", rgb.size, background), alpha)
    pixels = np.empty((rgb.height, rgb.width, 3), dtype=np.uint8)
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


def _colour(background: RGB) -> RGB:
    """Return `background`, or refuse it where it is not three whole numbers in 0…255."""
    try:
        levels = tuple(background)
        if len(levels) == 3 and all(level in range(256) for level in levels):
            return int(levels[0]), int(levels[1]), int(levels[2])
    except (TypeError, ValueError):  # one number, or three of something else
        pass
    raise ImageError(
        say(
            "The background {background} is no colour; give red, green and blue, each in "
            "0…255, for example (255, 255, 255).",
            background=shorten(repr(background)),
        )
    )


def _quoted(name: str) -> str:
    return repr(shorten(name))
