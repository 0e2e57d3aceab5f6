"""Encode and resize pictures, put patches side by side, and draw picture cards with captions."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageOps

from hookviz.drawing.figures import break_lines, line_height, pillow_font, write_lines
from hookviz.drawing.layout import Geometry, lay_out
from hookviz.types import Pixels

Resampling = Image.Resampling
_ENLARGED_PX = 384  # pixels of the longer side of an enlarged picture: three times 128


def encode_png(picture: Pixels, *, compress_level: int = 6) -> bytes:
    """Return a picture, uint8 ``(H, W, 3)`` or with alpha ``(H, W, 4)``, as a PNG file.

    Of zlib's levels, 1 is a quarter larger than 6 and five times as fast.
    """
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "PNG", compress_level=compress_level)
    return file.getvalue()


def encode_jpeg(picture: Pixels, *, quality: int) -> bytes:
    """Return a picture, RGB uint8 ``(H, W, 3)``, as a JPEG file of that quality, 1 to 95."""
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "JPEG", quality=quality)
    return file.getvalue()


def resize(
    picture: NDArray[Any], size: tuple[int, int], method: Resampling = Resampling.BICUBIC
) -> NDArray[Any]:
    """Return a picture, uint8 ``(H, W, 3)``, or a map, float32 ``(H, W)``, in another size.

    `size` is (rows, columns). Of Pillow's methods, ``BOX`` takes the mean of the pixels that each
    covers.
    """
    return np.asarray(Image.fromarray(picture).resize(size[::-1], method))


def small_png(picture: Pixels, width: int) -> bytes:
    """Return a picture, uint8 ``(H, W, 3)``, as a PNG that is `width` pixels wide."""
    rows, columns = picture.shape[:2]
    return encode_png(
        resize(picture, (max(1, round(width * rows / columns)), width)), compress_level=1
    )


def middle_square(picture: Pixels, side: int) -> Pixels:
    """Return the middle square of a picture, uint8 ``(H, W, 3)``, resized to `side` pixels."""
    height, width = picture.shape[:2]
    edge = min(height, width)
    left, top = (width - edge) // 2, (height - edge) // 2
    box = (left, top, left + edge, top + edge)
    return np.asarray(Image.fromarray(picture).resize((side, side), box=box))


def kernel_picture(kernel: NDArray[np.floating[Any]]) -> Pixels:
    """Return a kernel over three colours, ``(3, h, w)``, as RGB uint8 ``(h, w, 3)``.

    0 is middle grey, and the largest absolute weight a full colour.
    """
    largest = float(np.abs(kernel).max()) or 1.0
    picture: Pixels = np.rint((kernel / largest + 1) * 127.5).astype(np.uint8).transpose(1, 2, 0)
    return picture


def fit_size(picture: Pixels, side: int) -> tuple[int, int]:
    """Return rows and columns of a picture ``(H, W, …)`` whose longer side becomes `side`."""
    height, width = picture.shape[:2]
    scale = side / max(height, width)
    return max(1, round(height * scale)), max(1, round(width * scale))


def thumbnail(picture: Pixels, side: int) -> Pixels:
    """Cut out the middle square of a picture, and shrink it to ``(side, side, 3)``, RGB uint8."""
    fitted = ImageOps.fit(Image.fromarray(picture), (side, side), Resampling.BILINEAR)
    small: Pixels = np.asarray(fitted)
    return small


def enlarged(picture: Pixels, side: int = _ENLARGED_PX) -> Pixels:
    """Enlarge a picture, ``(H, W, 3)``, smoothly to a longer side of at least `side`."""
    return picture if max(picture.shape[:2]) >= side else resize(picture, fit_size(picture, side))


def square(picture: Pixels, side: int) -> Pixels:
    """Stretch a picture to ``(side, side, 3)``; a small picture stays in sharp blocks."""
    method = Resampling.NEAREST if max(picture.shape) < side else Resampling.BILINEAR
    return resize(picture, (side, side), method)


@dataclass(frozen=True, eq=False, slots=True)
class PatchSheet:
    """Picture of patches side by side.

    Attributes:
        png: the picture, a pixel for a pixel of a patch; clear where there is no patch.
        geometry: where each lies in it.
    """

    png: bytes
    geometry: Geometry


def patch_sheet(patches: Sequence[Pixels | None], side: int) -> PatchSheet:
    """Draw patches, RGB uint8 ``(h, w, 3)``, as squares of `side` pixels, in their order.

    One of other proportions is cut to its middle square.

    A patch that is None leaves its square clear.
    """
    geometry = replace(lay_out(len(patches), side, side), magnification=1)
    sheet = np.zeros((geometry.height, geometry.width, 4), np.uint8)
    for position, patch in enumerate(patches):
        if patch is not None:
            left, top, right, bottom = geometry.box(position)
            sheet[top:bottom, left:right, :3] = middle_square(patch, side)
            sheet[top:bottom, left:right, 3] = 255
    return PatchSheet(encode_png(sheet, compress_level=1), geometry)


_CARD_PICTURE_PX = 336  # pixels that the longer side of a picture has at least
_MARGIN, _GAP = 48, 24
_INK, _GREY, _GROUND = "#1a1a1a", "#666666", "#ffffff"
_HEADING, _WORDS, _SMALL = 44, 26, 20  # pixels of letters


@dataclass(frozen=True, eq=False, slots=True)
class Face:
    """A picture of a card, RGB uint8 ``(H, W, 3)``, with a line above it and one below."""

    picture: Pixels = field(repr=False)
    title: str
    words: str


@dataclass(frozen=True, eq=False, slots=True)
class PictureCard:
    """A card as a PNG file.

    Attributes:
        png: the file.
        boxes: where each picture lies on it: left, top, right and bottom in pixels.
        magnification: pixels of the card along a pixel of a picture.
    """

    png: bytes = field(repr=False)
    boxes: tuple[tuple[int, int, int, int], ...]
    magnification: int


def picture_card(heading: str, faces: Sequence[Face], words: str, foot: str) -> PictureCard:
    """Draw pictures of one size, ``(H, W, 3)``, in a row between a heading and words about them.

    The heading is in large letters, and broken into lines where it is long. `words` are a sentence
    or two under the pictures, `foot` a small line at the end.
    """
    height, width = faces[0].picture.shape[:2]
    times = -(-_CARD_PICTURE_PX // max(height, width))
    size = (times * height, times * width)
    across = len(faces) * size[1] + (len(faces) - 1) * _GAP
    large, plain, small = (pillow_font(pixels) for pixels in (_HEADING, _WORDS, _SMALL))
    above = break_lines(heading, large, across)
    below = break_lines(words, plain, across)
    notes = [break_lines(face.words, plain, size[1]) for face in faces]
    top = _MARGIN + line_height(len(above), large) + _GAP + line_height(1, small)
    beside = top + size[0] + _GAP // 2 + line_height(max(map(len, notes)), plain)
    end = beside + _GAP + line_height(len(below), plain)
    sheet = Image.new(
        "RGB", (across + 2 * _MARGIN, end + _GAP + line_height(1, small) + _MARGIN // 2), _GROUND
    )
    pen, boxes = ImageDraw.Draw(sheet), []
    write_lines(pen, (_MARGIN, _MARGIN), above, large, _INK)
    for place, face in enumerate(faces):
        left = _MARGIN + place * (size[1] + _GAP)
        write_lines(pen, (left, top - line_height(1, small)), [face.title], small, _GREY)
        drawn = np.repeat(np.repeat(face.picture, times, 0), times, 1)
        sheet.paste(Image.fromarray(drawn), (left, top))
        boxes.append((left, top, left + size[1], top + size[0]))
        write_lines(pen, (left, top + size[0] + _GAP // 2), notes[place], plain, _INK)
    write_lines(pen, (_MARGIN, beside + _GAP), below, plain, _INK)
    write_lines(pen, (_MARGIN, end + _GAP), [foot], small, _GREY)
    return PictureCard(encode_png(np.asarray(sheet)), tuple(boxes), times)
