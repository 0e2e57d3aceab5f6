"""Encode pictures as PNG and JPEG files, resize them, and put patches side by side in one."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from hookviz.drawing.layout import Geometry, lay_out
from hookviz.types import Pixels

Resampling = Image.Resampling
_SIDE = 384  # pixels of the longer side of an enlarged picture: three times 128


def encode_png(picture: Pixels, *, compress_level: int = 6) -> bytes:
    """Return a picture, uint8 ``(H, W, 3)`` or with alpha ``(H, W, 4)``, as a PNG file.

    Args:
        picture: what is encoded, without loss.
        compress_level: of zlib; 1 is a quarter larger than 6 and five times as fast.
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

    Args:
        picture: what is resized.
        size: rows and columns of the result.
        method: how Pillow makes its pixels: ``BOX`` takes the mean of what each covers.
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


def enlarged(picture: Pixels, side: int = _SIDE) -> Pixels:
    """Enlarge a picture, ``(H, W, 3)``, smoothly to a longer side of at least `side`."""
    return picture if max(picture.shape[:2]) >= side else resize(picture, fit_size(picture, side))


def square(picture: Pixels, side: int) -> Pixels:
    """Stretch a picture to ``(side, side, 3)``; what is small stays in sharp blocks."""
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

    Args:
        patches: one or more; None leaves its place clear.
        side: pixels of a square.
    """
    geometry = replace(lay_out(len(patches), side, side), magnification=1)
    sheet = np.zeros((geometry.height, geometry.width, 4), np.uint8)
    for position, patch in enumerate(patches):
        if patch is not None:
            left, top, right, bottom = geometry.box(position)
            sheet[top:bottom, left:right, :3] = middle_square(patch, side)
            sheet[top:bottom, left:right, 3] = 255
    return PatchSheet(encode_png(sheet, compress_level=1), geometry)
