"""Decode untrusted bytes to upright RGB pixels, or refuse them; without torch.

Pillow decodes; this file keeps it within the pixel limit, and puts right what it leaves to its
caller: orientation, depth, colour space and transparency. `formats` says which formats it may try.
The frames of an animation are counted before any is decoded.
"""

import logging
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms, ImageOps, TiffImagePlugin
from PIL.AvifImagePlugin import AvifImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.WebPImagePlugin import WebPImageFile

from hookviz.errors import shorten
from hookviz.images.bit_depth import (
    OTHER_BYTE,
    raw_mode_of,
    rounded,
    scaled_grey,
    scaled_grey_and_opacity,
)
from hookviz.images.choices import (
    NO_CHOICES,
    WHOLE_FILE,
    Choices,
    Selection,
    Window,
    check_has_no_window,
    checked_page,
    page_count,
)
from hookviz.images.formats import (
    HEAD,
    BandsError,
    DicomFile,
    check_scans,
    check_size,
    find_reader,
    readable,
)
from hookviz.images.optional_formats import (
    bands_of_tiff,
    check_can_read_bands,
    check_is_tiff,
    picture_of_dicom,
)

Pixels = NDArray[np.uint8]
RGB = tuple[int, int, int]

WHITE: RGB = (255, 255, 255)

_BYTES, DEEP_BYTES = 20, 40  # that a pixel takes at most, of 8 bits a value and of more
_TILE = TiffImagePlugin.TILEWIDTH, TiffImagePlugin.TILELENGTH

_log = logging.getLogger(__name__)
_DAMAGE = (ArithmeticError, EOFError, LookupError, OSError, SyntaxError, TypeError, ValueError)
# Warning: Pillow warns of damaged EXIF data, and Python can be told to raise that
_BROKEN_METADATA = (*_DAMAGE, struct.error, ImageCms.PyCMSError, Warning)
"""Exceptions of Pillow on broken metadata."""
_ANIMATION_READERS = (GifImageFile, PngImageFile, WebPImageFile, AvifImageFile)
"""Of formats whose frames are moments; those of a TIFF are pages."""

_GIF_HEAD = 13  # bytes before the colours of a GIF


@dataclass(frozen=True, slots=True)
class Limits:
    """How an image is decoded.

    Attributes:
        pixels: that it may have.
        background: RGB, what shows through where it is transparent.
        choices: page, bands and window.
        make: makes the array that is filled, of a shape.
    """

    pixels: int
    background: RGB = WHITE
    choices: Choices = NO_CHOICES
    make: Callable[[tuple[int, ...]], Pixels] = lambda shape: np.empty(shape, np.uint8)


@dataclass(frozen=True, eq=False, slots=True)
class Decoded:
    """Decoded file.

    Attributes:
        pixels: ``(H, W, 3)``.
        selection: page, bands and window of the file.
        animated: whether it is an animation, of which this is the first frame.
    """

    pixels: Pixels
    selection: Selection = WHOLE_FILE
    animated: bool = False


@dataclass(frozen=True, slots=True)
class Head:
    """Size of an image before it is decoded.

    Attributes:
        pixels: how many it has.
        memory: bytes that decoding it takes at most, the file's own not among them.
    """

    pixels: int
    memory: int


def read_head(data: bytes, name: str, most: int, choices: Choices = NO_CHOICES) -> Head:
    """Return what the header tells; no pixel is decoded.

    Args:
        data: a whole file.
        name: of the file, for messages.
        most: pixels that an image may have.
        choices: with the page.

    Raises:
        ImageError: as `decode`, so far as the head shows it.
    """
    reader = find_reader(data[:HEAD], name)
    if reader is DicomFile:  # its own size is checked where it is decoded
        return Head(most, most * DEEP_BYTES)
    page = checked_page(choices.page, page_count(data), name)
    with readable(name, most):
        try:
            image = _opened(data, reader, name, most, page)
        except BandsError as error:
            check_size(name, most, error.pixels, 1)
            room = DEEP_BYTES + error.count * error.bits // 2  # four times its bytes
            return Head(error.pixels, error.pixels * room)
        pixels = image.width * image.height
        is_deep = image.mode.startswith(("I", "F")) or _raw_mode(image) in OTHER_BYTE
        return Head(pixels, pixels * (DEEP_BYTES if is_deep else _BYTES))


def decode(data: bytes, name: str, limits: Limits) -> Decoded:
    """Decode the first frame, or the page that is chosen, as `hookviz.images.reading.decode` says.

    Raises:
        ImageError: it can't be decoded within the limits, or has no such page.
    """
    reader, choices, pages = find_reader(data[:HEAD], name), limits.choices, page_count(data)
    with readable(name, limits.pixels):
        if reader is DicomFile:
            return _of_package(picture_of_dicom(data, name, limits.pixels, choices), name, limits)
        page = checked_page(choices.page, pages, name)
        try:
            image = _opened(data, reader, name, limits.pixels, page)
        except BandsError as error:
            image = None
            check_can_read_bands(name, error)
        if image is None or choices.bands is not None:
            check_is_tiff(data, name)
            result = bands_of_tiff(data, name, limits.pixels, choices, page)
            decoded = _of_package(result, name, limits)
        else:
            decoded = _of_image(
                image, lambda: _opened(data, reader, name, limits.pixels, page), data, name, limits
            )
    selection = replace(decoded.selection, page=page, pages=pages)
    return replace(decoded, selection=selection, animated=frame_count(data) > 1)


def _of_package(result: tuple[Image.Image, Selection], name: str, limits: Limits) -> Decoded:
    """Return the image that another package than Pillow decoded."""
    picture, selection = result
    return replace(
        pixels_of(picture, name, replace(limits, choices=NO_CHOICES)), selection=selection
    )


def _of_image(
    image: ImageFile, again: Callable[[], ImageFile], data: bytes, name: str, limits: Limits
) -> Decoded:
    """Decode what Pillow opened, and can open again."""
    if isinstance(image, JpegImageFile):
        check_scans(data, image, name, limits.pixels)
    raw_mode = _raw_mode(image)
    if raw_mode in OTHER_BYTE:
        return _of_16_bits(image, again(), name, limits)
    if raw_mode in {"L;2", "L;4"} and "transparency" in image.info:
        # Pillow scales grey of 2 or 4 bits to 8, but not the grey that counts as transparent
        image.info["transparency"] *= 85 if raw_mode == "L;2" else 17
    return pixels_of(image, name, limits)


def _of_16_bits(image: ImageFile, twin: ImageFile, name: str, limits: Limits) -> Decoded:
    """Decode an image whose other bytes its twin decodes."""
    for index, tile in enumerate(twin.tile):
        other = OTHER_BYTE[raw_mode_of(tile.args)]
        whole = (other, *tile.args[1:]) if isinstance(tile.args, tuple) else other
        twin.tile[index] = tile._replace(args=whole)
    if _raw_mode(image) != "LA;16B":
        return pixels_of(rounded(image, twin), name, limits)
    levels, window = scaled_grey_and_opacity(twin, limits.choices.window)
    levels.info = dict(image.info)
    decoded = pixels_of(levels, name, replace(limits, choices=NO_CHOICES))
    return replace(decoded, selection=_windowed(window, limits.choices))


def decode_frames(data: bytes, name: str, count: int, limits: Limits) -> list[Pixels]:
    """Decode `count` frames of an animation in even steps, as `decode` does its first.

    With few frames some are repeated. Where all together have more pixels than one image may have,
    only the first ones count: a frame can show pixels of any frame before, so that each is decoded.

    Raises:
        ImageError: one is damaged.
    """
    frames: dict[int, Pixels] = {}
    reader = find_reader(data[:HEAD], "animation")
    if issubclass(reader, GifImageFile):
        reader = GifImageFile  # ours reads the first frame alone
    with readable(name, limits.pixels), reader(BytesIO(data)) as image:
        check_size(name, limits.pixels, image.width, image.height)
        most = limits.pixels // (image.width * image.height)
        wanted = frame_numbers(max(1, min(frame_count(data), most)), count)
        for number in range(max(wanted) + 1):
            image.seek(number)
            if number in wanted:
                frames[number] = pixels_of(image.copy(), name, limits).pixels
    return [frames[number] for number in wanted]


def _opened(data: bytes, reader: type[ImageFile], name: str, most: int, page: int = 1) -> ImageFile:
    """Open the image by its header, and refuse more pixels than are allowed: no bomb is decoded."""
    if reader is AvifImageFile:
        # libavif refuses large images as if they were damaged; the size is in its "ispe" boxes
        # (ISO/IEC 23008-12, 6.5.3), near the start.
        for box in re.finditer(rb"ispe\0{4}(.{8})", data[:65536], re.DOTALL):
            check_size(name, most, *struct.unpack(">II", box[1]))
    image = reader(BytesIO(data))
    if page > 1:
        image.seek(page - 1)
    check_size(name, most, image.width, image.height)
    # A TIFF is decoded tile by tile, and a tile can be larger than its image.
    tags = getattr(image, "tag_v2", {})
    check_size(name, most, *(tags.get(tag, 1) for tag in _TILE))
    return image


def _raw_mode(image: ImageFile) -> Any:
    """Return the raw mode of the values; empty without any."""
    return raw_mode_of(image.tile[0].args) if image.tile else ""


def pixels_of(image: Image.Image, name: str, limits: Limits) -> Decoded:
    """Return upright sRGB ``(H, W, 3)`` of a Pillow image of any mode, which is not changed.

    Raises:
        ImageError: it has too many pixels, or no more than 8 bits where a window is chosen.
    """
    check_size(name, limits.pixels, image.width, image.height)
    image.load()
    upright, selection = _upright(image, name), WHOLE_FILE
    if upright.mode.startswith(("I", "F")):
        colour, alpha, window = scaled_grey(upright, limits.choices.window)
        selection = _windowed(window, limits.choices)
    else:
        check_has_no_window(limits.choices, name)
        colour, alpha = _split_alpha(upright)
    rgb = _to_srgb(colour, image.info.get("icc_profile"), name)
    if alpha is not None:
        rgb = Image.composite(rgb, Image.new("RGB", rgb.size, limits.background), alpha)
    pixels = limits.make((rgb.height, rgb.width, 3))
    step = max(1, 2**22 // rgb.width)  # band by band: at once, Pillow takes twice the memory
    for top in range(0, rgb.height, step):
        bottom = min(top + step, rgb.height)
        whole = bottom - top == rgb.height  # `crop` could warn of its size
        pixels[top:bottom] = np.asarray(rgb if whole else rgb.crop((0, top, rgb.width, bottom)))
    return Decoded(pixels, selection)


def _windowed(window: Window, choices: Choices) -> Selection:
    """Return the selection of a window; None for one that a person chose and knows."""
    return Selection(window=None if choices.window else window)


def _upright(image: Image.Image, name: str) -> Image.Image:
    try:
        if image.getexif().get(0x0112, 1) == 1:
            return image  # `exif_transpose` would make a copy
        return ImageOps.exif_transpose(image)
    # Broken EXIF data say nothing about the pixels: like browsers, show them as they are stored.
    except _BROKEN_METADATA as error:
        _log.info("%r: EXIF data ignored: %s", shorten(name), error)
        return image


def _split_alpha(image: Image.Image) -> tuple[Image.Image, Image.Image | None]:
    """Split into colours (mode L, RGB, CMYK or LAB) and opacity (mode L) if some pixel lacks it."""
    if image.has_transparency_data:
        image = image.convert("LA" if image.mode in {"1", "L", "LA", "La"} else "RGBA")
        alpha = image.getchannel("A")
        opaque = alpha.getextrema() == (255, 255)
        return image.convert(image.mode[:-1]), None if opaque else alpha
    if image.mode in {"L", "RGB", "CMYK", "LAB"}:
        return image, None
    return image.convert("L" if image.mode == "1" else "RGB"), None


def _to_srgb(image: Image.Image, icc: bytes | None, name: str) -> Image.Image:
    """Convert a Pillow image of mode L, RGB, CMYK or LAB to sRGB, by its profile if valid."""
    if image.mode == "LAB":
        spaces = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
        return ImageCms.buildTransform(*spaces, "LAB", "RGB").apply(image)
    if icc:
        try:
            return _by_profile(image, icc)
        # An image with a profile that nobody can use still has its colours, a little off at worst.
        except _BROKEN_METADATA as error:
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


def frame_count(data: bytes) -> int:
    """Return how many frames an animation has; 1 of any other file, and of a broken one.

    Frames of a GIF that reach beyond its picture make it none: Pillow would make the picture larger
    for them, by whatever they say.
    """
    try:
        reader = find_reader(data[:HEAD], "animation")
        if issubclass(reader, GifImageFile):
            return _frames_of_gif(data)
        if not issubclass(reader, _ANIMATION_READERS):
            return 1
        with reader(BytesIO(data)) as image:
            return max(1, int(getattr(image, "n_frames", 1)))
    # What Pillow raises on broken bytes is anything; `decode` says what is wrong with them.
    except Exception:  # noqa: BLE001
        return 1


def frame_numbers(total: int, count: int) -> Sequence[int]:
    """Return the numbers of `count` of `total` frames: the middles of `count` equal parts.

    >>> from hookviz.images.decoding import frame_numbers
    >>> frame_numbers(8, 4), frame_numbers(2, 4)
    ([1, 3, 5, 7], [0, 0, 1, 1])
    """
    return [(2 * number + 1) * total // (2 * count) for number in range(count)]


def _frames_of_gif(data: bytes) -> int:
    """Count the frames by GIF89a's blocks; 1 where one lies outside of the picture."""
    width, height = struct.unpack_from("<HH", data, 6)
    frames = 0
    for left, top, columns, rows in _boxes(data):
        if left + columns > width or top + rows > height:
            return 1
        frames += 1
    return max(1, frames)


def _boxes(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield each frame's left, top, width and height (GIF89a, sections 17 to 27)."""
    at = _GIF_HEAD + _colours(data[10])
    while at < len(data):
        if data[at] == 0x21:  # an extension: its kind, then sub-blocks
            at = _after_blocks(data, at + 2)
        elif data[at] == 0x2C:
            left, top, columns, rows, packed = struct.unpack_from("<HHHHB", data, at + 1)
            yield left, top, columns, rows
            at = _after_blocks(data, at + 10 + _colours(packed) + 1)
        elif data[at] == 0x3B:
            return
        else:
            at += 1  # as Pillow does, past what is no block


def _colours(packed: int) -> int:
    """Return the bytes of a colour table; 0 without one."""
    return 3 << ((packed & 7) + 1) if packed & 0x80 else 0


def _after_blocks(data: bytes, at: int) -> int:
    """Return where the sub-blocks that begin at `at` end."""
    while at < len(data) and data[at]:
        at += data[at] + 1
    return at + 1
