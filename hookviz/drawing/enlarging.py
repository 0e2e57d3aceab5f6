"""Small pictures made as large as one looks at them."""

import numpy as np
from PIL import Image

from hookviz.types import Pixels

_SIDE = 384  # pixels of the longer side: three times 128


def enlarged(picture: Pixels, side: int = _SIDE) -> Pixels:
    """A picture, ``(H, W, 3)``, with a longer side of at least `side`, enlarged smoothly."""
    height, width = picture.shape[:2]
    factor = side / max(height, width)
    if factor <= 1:
        return picture
    size = round(width * factor), round(height * factor)
    return np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.BICUBIC))
