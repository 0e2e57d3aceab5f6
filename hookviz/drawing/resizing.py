"""Make small pictures of large ones, and large ones of small ones."""

import numpy as np
from PIL import Image, ImageOps

from hookviz.drawing.overlay import input_picture
from hookviz.types import ModelInput, Pixels

_SIDE = 384  # pixels of the longer side: three times 128


def thumbnail(picture: Pixels, side: int) -> Pixels:
    """Cut out the middle square of a picture, and shrink it to ``(side, side, 3)``, RGB uint8."""
    fitted = ImageOps.fit(Image.fromarray(picture), (side, side), Image.Resampling.BILINEAR)
    small: Pixels = np.asarray(fitted)
    return small


def input_thumbnail(model_input: ModelInput, side: int) -> Pixels:
    """Return a `thumbnail` of what the network saw, or of a grey picture of it."""
    return thumbnail(input_picture(model_input), side)


def enlarged(picture: Pixels, side: int = _SIDE) -> Pixels:
    """Enlarge a picture, ``(H, W, 3)``, smoothly to a longer side of at least `side`."""
    height, width = picture.shape[:2]
    factor = side / max(height, width)
    if factor <= 1:
        return picture
    size = round(width * factor), round(height * factor)
    return np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.BICUBIC))


def square(picture: Pixels, side: int) -> Pixels:
    """Stretch a picture to ``(side, side, 3)``; what is small stays in sharp blocks."""
    method = Image.Resampling.NEAREST if max(picture.shape) < side else Image.Resampling.BILINEAR
    stretched: Pixels = np.asarray(Image.fromarray(picture).resize((side, side), method))
    return stretched
