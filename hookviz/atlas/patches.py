"""Cut the part of an image that a cell sees out of the original, and keep it small."""

import math
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hookviz.errors import HookVizError
from hookviz.images.formats import HEAD, find_reader
from hookviz.images.reading import decode_here
from hookviz.language.saying import say
from hookviz.types import Crop, Pixels

Box = tuple[int, int, int, int]
"""Top, left, bottom, right in pixels of the original; the last row and column not included."""

_EXACT_SIDE = 16  # patches up to this are kept to the pixel; JPEG would blur single pixels
_QUALITY = 85
_TOLERANCE = 1e-6  # of a pixel: a stretch that ends with one does not touch the next


def boxes_in_original(
    fields: NDArray[np.float64], crop: Crop | None, image: Pixels
) -> list[Box | None]:
    """Return where receptive fields lie in the original; None for those that see nothing of it.

    All at once: an image can be in the lists of thousands of channels.

    Args:
        fields: top, left, bottom and right in pixels of the input, ``(M, 4)``.
        crop: which part of the original the input shows; None where that is not known, and then it
            is the whole image.
        image: the original, ``(H, W, 3)``.
    """
    size = np.array(image.shape[:2])
    sees: NDArray[np.bool_] = np.all(fields[:, :2] < fields[:, 2:], axis=1)
    if crop is None:
        whole = 0, 0, int(size[0]), int(size[1])
        return [whole if each else None for each in sees.tolist()]
    corner = np.array((crop.top, crop.left))
    scale = np.array(
        ((crop.bottom - crop.top) / crop.height, (crop.right - crop.left) / crop.width)
    )
    start, end = corner + fields[:, :2] * scale, corner + fields[:, 2:] * scale
    first = np.maximum(0, np.floor(start + _TOLERANCE)).astype(np.int64)
    last = np.minimum(size, np.ceil(end - _TOLERANCE)).astype(np.int64)
    sees &= np.all(first < last, axis=1)
    boxes = np.concatenate([first, last], axis=1)
    return [
        (int(box[0]), int(box[1]), int(box[2]), int(box[3])) if each else None
        for box, each in zip(boxes.tolist(), sees.tolist(), strict=True)
    ]


class Original:
    """Image of which parts are cut out, with halves of itself that are made once.

    A large part that becomes a small patch is taken from one of these, so that no patch costs more
    than another.
    """

    def __init__(self, pixels: Pixels) -> None:
        self._halves = [Image.fromarray(pixels)]

    def cut(self, box: Box, side: int) -> bytes:
        """Encode the part in a box as a PNG or a JPEG, no side longer than `side`.

        It is shrunk, never enlarged: one pixel can be a patch.
        """
        top, left, bottom, right = box
        height, width = bottom - top, right - left
        scale = min(1.0, side / max(height, width))
        size = max(1, round(width * scale)), max(1, round(height * scale))
        if size == (width, height):
            patch = self._halves[0].crop((left, top, right, bottom))
        else:
            level = max(0, math.floor(math.log2(max(height, width) / side)))
            image, times = self._half(level), 2**level
            ends = min(right / times, image.width), min(bottom / times, image.height)
            patch = image.resize(
                size, Image.Resampling.BILINEAR, box=(left / times, top / times, *ends)
            )
        buffer = BytesIO()
        if max(size) <= _EXACT_SIDE:
            patch.save(buffer, "PNG")
        else:
            patch.save(buffer, "JPEG", quality=_QUALITY, optimize=True)
        return buffer.getvalue()

    def _half(self, level: int) -> Image.Image:
        """Return the image with both sides divided by 2 to the power of `level`, rounded up."""
        while len(self._halves) <= level:
            self._halves.append(self._halves[-1].reduce(2))
        return self._halves[level]


def decode_patch(data: bytes, side: int, name: str) -> Pixels:
    """Decode a patch, RGB uint8 ``(h, w, 3)``, from bytes that anybody may have written.

    Raises:
        HookVizError: they are no PNG or JPEG of at most `side` pixels a side.
    """
    try:
        image = find_reader(data[:HEAD], name)(BytesIO(data))  # no more than its head is read
        small = image.format in ("PNG", "JPEG") and max(image.size) <= side
    except HookVizError:
        raise
    except Exception as error:  # on broken bytes Pillow raises whatever its line of code raises
        raise HookVizError(say("{name} is damaged.", name=name)) from error
    if not small:
        raise HookVizError(
            say("{name} is no picture of {side} pixels a side.", name=name, side=side)
        )
    return decode_here(data, name).pixels
