"""Draw a card to hand round: pictures side by side with what is said of each, as one PNG file.

A pixel of a picture is a square of whole pixels on the card, so that the picture can be read back.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from PIL import Image, ImageDraw

from hookviz.drawing.fonts import break_lines, line_height, pillow_font, write_lines
from hookviz.drawing.pictures import encode_png
from hookviz.types import Pixels

_SIDE = 336  # pixels that the longer side of a picture has at least
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

    Args:
        heading: in large letters; it is broken into lines where it is long.
        faces: the pictures, from left to right.
        words: a sentence or two under them.
        foot: a small line at the end, which says who made it.
    """
    height, width = faces[0].picture.shape[:2]
    times = -(-_SIDE // max(height, width))
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
