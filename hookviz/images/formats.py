"""Which formats of image files are read, how each is recognised, and Pillow's reader for it."""

import math
import re

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

FORMATS = mark("PNG, JPEG, WebP, GIF, BMP, TIFF or AVIF")
SUFFIXES = frozenset(
    {
        *(".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".gif"),
        *(".bmp", ".dib", ".tif", ".tiff", ".avif"),
    }
)
"""How the names of files in `FORMATS` end, in small letters."""

HEAD = 64
"""Bytes at the start of a file that are enough to recognise every format."""

_BITS, _PLANES = TiffImagePlugin.BITSPERSAMPLE, TiffImagePlugin.PLANAR_CONFIGURATION
_BANDS = ("R", "G", "B", "A")


class _TiffFile(TiffImagePlugin.TiffImageFile):
    """Pillow's reader, put right where it would warn or go wrong without a word."""

    def _setup(self) -> None:
        if self.tag_v2.get(TiffImagePlugin.SAMPLESPERPIXEL, 1) == 1:
            self.tag_v2[_PLANES] = 1  # grey has no planes to store apart, whatever the file says
        super()._setup()
        if self.tag_v2.get(_PLANES) == 2 and self.tag_v2.get(_BITS, ())[0] == 16:
            # Pillow reads colours of 16 bits that are stored plane by plane as if they had 8
            end = ";16L" if self.tag_v2.prefix == b"II" else ";16B"
            bands = [(tile, tile.args) for tile in self.tile if isinstance(tile.args, tuple)]
            if all(args[0] in _BANDS for _, args in bands):
                self.tile = [tile._replace(args=(a[0] + end, *a[1:])) for tile, a in bands]

    def load_prepare(self) -> None:
        areas = [(box[2] - box[0]) * (box[3] - box[1]) for _, box, *_ in self.tile if box]
        if sum(areas) < math.prod(self._tile_size):  # Pillow would leave the rest black
            raise ValueError("parts of the picture are missing")
        if self._im is None:  # else Pillow checks the size again, and warns below our own limit
            self.im = Image.new(self.mode, self._tile_size).im
        super().load_prepare()


class _GifFile(GifImageFile):
    """Pillow's reader without what comes after the first frame.

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
_RELATIVES: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (re.compile(rb"\Z"), "empty (0 bytes)"),
    (re.compile(rb".{4}ftyp(hei|hev|mif1|msf1)", re.DOTALL), mark("a HEIC photo")),
    (re.compile(rb"\0\0\0\x0cjP {2}|\xff\x4f\xff\x51"), mark("a JPEG 2000 image")),
    (re.compile(rb"\0\0\0\x0cJXL |\xff\x0a"), mark("a JPEG XL image")),
    (re.compile(rb"\s*(<\?xml|<svg|<!DOCTYPE svg)"), mark("an SVG drawing or other XML")),
    (re.compile(rb"%PDF"), mark("a PDF document")),
    (re.compile(rb"8BPS"), mark("a Photoshop document")),
)


def find_reader(head: bytes, name: str) -> type[ImageFile]:
    """Pillow's reader for a file that starts with `head`, its first `HEAD` bytes.

    Raises:
        ImageError: it is of no format in `FORMATS`, and which it is where that is known.
    """
    for pattern, reader in _READERS:
        if pattern.match(head):
            return reader
    what = next((what for pattern, what in _RELATIVES if pattern.match(head)), say("no image"))
    raise ImageError(
        say(
            "{name!r} is {kind}; HookViz reads {formats}.",
            name=shorten(name),
            kind=what,
            formats=say(FORMATS),
        )
    )
