"""Small pictures that tests share."""

import io
from typing import Any

import numpy as np
from PIL import Image


def picture(seed: int = 0, width: int = 40, height: int = 30) -> Image.Image:
    """A smooth random RGB picture."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (5, 7, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


def encoded(image: Image.Image, format: str = "PNG", **options: Any) -> bytes:  # noqa: A002
    """The bytes of an image file."""
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()
