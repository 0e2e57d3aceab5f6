"""Recognise image files by their first bytes, choose Pillow's reader, and refuse what it can't."""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from PIL import Image, TiffImagePlugin
from PIL.AvifImagePlugin import AvifImageFile
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.WebPImagePlugin import WebPImageFile

from hookviz.errors import ImageError, shorten
from hookviz.language.saying import mark, say
from hookviz.reader.wall import quoted

FORMATS = mark("PNG, JPEG, WebP, GIF, BMP, TIFF or AVIF")
SUFFIXES = frozenset(
    {
        *(".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".gif"),
        *(".bmp", ".dib", ".tif", ".tiff", ".avif"),
    }
)
"""How the names of files in `FORMATS` end, in small letters."""

HEAD = 132
"""Bytes at the start of a file that are enough to recognise every format."""

_BITS, _PLANES = TiffImagePlugin.BITSPERSAMPLE, TiffImagePlugin.PLANAR_CONFIGURATION
_SIZE = TiffImagePlugin.IMAGEWIDTH, TiffImagePlugin.IMAGELENGTH
_COLOURS = {0: 1, 1: 1, 2: 3, 3: 1, 5: 4, 6: 3, 8: 3}
"""Values of a pixel by photometric interpretation (TIFF 6.0), to which opacity can come."""
_BANDS = ("R", "G", "B", "A")


class BandsError(Exception):
    """A TIFF whose bands are of a number or kind that Pillow does not read.

    Attributes:
        count: how many bands it has.
        bits: of one value.
        pixels: width times height.
    """

    def __init__(self, count: int, bits: int, pixels: int) -> None:
        super().__init__(count, bits, pixels)
        self.count, self.bits, self.pixels = count, bits, pixels


class DicomFile(ImageFile):
    """Stands for pydicom, which reads DICOM and is no reader of Pillow's; it is never opened."""


class _TiffFile(TiffImagePlugin.TiffImageFile):
    """Pillow's TIFF reader, corrected where it would warn or silently go wrong."""

    def _setup(self) -> None:
        count: Any = self.tag_v2.get(TiffImagePlugin.SAMPLESPERPIXEL, 1)
        kind: Any = self.tag_v2.get(TiffImagePlugin.PHOTOMETRIC_INTERPRETATION)
        colours = int(_COLOURS.get(kind) or count)
        are_planes_of_grey = colours == 1 < count and self.tag_v2.get(_PLANES) == 2
        if count > colours + 1 or are_planes_of_grey:  # Pillow would read the first, or fail
            raise self._bands_error(count)
        if count == 1:
            self.tag_v2[_PLANES] = 1  # grey has no planes to store apart, whatever the file says
        try:
            super()._setup()
        except SyntaxError as error:  # it knows no mode for these bands
            if str(error) != "unknown pixel mode":
                raise
            raise self._bands_error(count) from error
        if self.tag_v2.get(_PLANES) == 2 and self.tag_v2.get(_BITS, ())[0] == 16:
            # Pillow reads colours of 16 bits that are stored plane by plane as if they had 8
            end = ";16L" if self.tag_v2.prefix == b"II" else ";16B"
            bands = [(tile, tile.args) for tile in self.tile if isinstance(tile.args, tuple)]
            if all(args[0] in _BANDS for _, args in bands):
                self.tile = [tile._replace(args=(a[0] + end, *a[1:])) for tile, a in bands]

    def _bands_error(self, count: int) -> BandsError:
        pixels = math.prod(self.tag_v2[tag] for tag in _SIZE)
        return BandsError(count, self.tag_v2.get(_BITS, (1,))[0], pixels)

    def load_prepare(self) -> None:
        areas = [(box[2] - box[0]) * (box[3] - box[1]) for _, box, *_ in self.tile if box]
        if sum(areas) < math.prod(self._tile_size):  # Pillow would leave the rest black
            raise ValueError("parts of the picture are missing")
        if self._im is None:  # else Pillow checks the size again, and warns below our own limit
            self.im = Image.new(self.mode, self._tile_size).im
        super().load_prepare()


class _GifFile(GifImageFile):
    """Pillow's GIF reader limited to the first frame, so that no later frame costs anything.

    To clear a frame away it fills a picture of that frame's size, at once when the file is opened:
    180 MB for a file of a hundred bytes.
    """

    @property
    def disposal_method(self) -> int:
        return 0

    @disposal_method.setter
    def disposal_method(self, method: int) -> None:
        pass


# Pillow's readers are called by their classes. `Image.open` would issue a DecompressionBombWarning
# for sizes that our own limit allows; its threshold and Python's warning filters are both state of
# the whole process, which a library that runs in many threads must leave alone.
_READERS: tuple[tuple[re.Pattern[bytes], type[ImageFile]], ...] = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), PngImageFile),
    (re.compile(rb"\xff\xd8\xff"), JpegImageFile),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), WebPImageFile),
    (re.compile(rb"GIF8[79]a"), _GifFile),
    (re.compile(rb"BM"), BmpImageFile),
    (re.compile(rb"II[*+]\0|MM\0[*+]"), _TiffFile),
    (re.compile(rb".{4}ftyp.{,48}avi[fs]", re.DOTALL), AvifImageFile),
)
_HEIC = re.compile(rb".{4}ftyp(hei|hev|mif1|msf1)", re.DOTALL)
_RELATIVES: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (re.compile(rb"\Z"), mark("empty (0 bytes)")),
    (re.compile(rb"\0\0\0\x0cjP {2}|\xff\x4f\xff\x51"), mark("a JPEG 2000 image")),
    (re.compile(rb"\0\0\0\x0cJXL |\xff\x0a"), mark("a JPEG XL image")),
    (re.compile(rb"\s*(<\?xml|<svg|<!DOCTYPE svg)"), mark("an SVG drawing or other XML")),
    (re.compile(rb"%PDF"), mark("a PDF document")),
    (re.compile(rb"8BPS"), mark("a Photoshop document")),
)


def find_reader(head: bytes, name: str) -> type[ImageFile]:
    """Return Pillow's reader for a file that starts with `head`, its first `HEAD` bytes.

    Raises:
        ImageError: it is of no format in `FORMATS`, and which it is where that is known.
    """
    for pattern, reader in _READERS:
        if pattern.match(head):
            return reader
    if _HEIC.match(head):
        return _heic_reader(name)
    if head[128:132] == b"DICM":
        if find_spec("pydicom") is None:
            raise not_installed(name, say("a DICOM image"), "medical")
        return DicomFile
    kind = next((kind for pattern, kind in _RELATIVES if pattern.match(head)), mark("no image"))
    raise ImageError(
        say(
            "{name!r} is {kind}; HookViz reads {formats}.",
            name=shorten(name),
            kind=say(kind),
            formats=say(FORMATS),
        )
    )


def is_for_owners(reader: type[ImageFile]) -> bool:
    """Return whether a reader is for files of one's own alone: it can't work behind the wall."""
    return reader is DicomFile or reader.__module__.startswith("pillow_heif")


def is_tiff(head: bytes) -> bool:
    """Return whether a file that starts with `head` is a TIFF."""
    return head[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


def _heic_reader(name: str) -> type[ImageFile]:
    try:
        reader: type[ImageFile] = import_module("pillow_heif").HeifImageFile
    except ImportError:
        raise not_installed(name, say("a HEIC photo"), "heic") from None
    return reader


def not_installed(name: str, kind: str, extra: str) -> ImageError:
    """Return the error for a file that an optional package reads."""
    return ImageError(
        say(
            '{name!r} is {kind}. HookViz reads it where pip install "hookviz[{extra}]" has been '
            "run; or save it as {formats}.",
            name=shorten(name),
            kind=kind,
            extra=extra,
            formats=say(FORMATS),
        )
    )


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


def check_size(name: str, most: int, width: Any, height: Any) -> None:
    """Refuse more pixels than are allowed."""
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


def check_scans(data: bytes, image: ImageFile, name: str, most: int) -> None:
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
