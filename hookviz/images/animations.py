"""Tell whether a file is an animation, and how many frames it has, without decoding any."""

import struct
from collections.abc import Iterator, Sequence
from io import BytesIO

from PIL.AvifImagePlugin import AvifImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.ImageFile import ImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.WebPImagePlugin import WebPImageFile

from hookviz.images.formats import HEAD, find_reader

_READERS = (GifImageFile, PngImageFile, WebPImageFile, AvifImageFile)
"""Of formats whose frames are moments; those of a TIFF are pages."""

_GIF_HEAD = 13  # bytes before the colours of a GIF


def frame_count(data: bytes) -> int:
    """Return how many frames an animation has; 1 of any other file, and of a broken one.

    Frames of a GIF that reach beyond its picture make it none: Pillow would make the picture larger
    for them, by whatever they say.
    """
    try:
        reader = find_reader(data[:HEAD], "animation")
        if issubclass(reader, GifImageFile):
            return _frames_of_gif(data)
        if not issubclass(reader, _READERS):
            return 1
        with reader(BytesIO(data)) as image:
            return max(1, int(getattr(image, "n_frames", 1)))
    # What Pillow raises on broken bytes is anything; `decode` says what is wrong with them.
    except Exception:  # noqa: BLE001
        return 1


def chosen(total: int, count: int) -> Sequence[int]:
    """Return the numbers of `count` of `total` frames: the middles of `count` equal parts.

    >>> from hookviz.images.animations import chosen
    >>> chosen(8, 4), chosen(2, 4)
    ([1, 3, 5, 7], [0, 0, 1, 1])
    """
    return [(2 * number + 1) * total // (2 * count) for number in range(count)]


def reader_of_frames(data: bytes) -> type[ImageFile]:
    """Return Pillow's reader that goes through all frames of a file that `frame_count` counted."""
    reader = find_reader(data[:HEAD], "animation")
    return GifImageFile if issubclass(reader, GifImageFile) else reader


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
