"""Palette indices as colours and as PNG files."""

import io
import zlib
from functools import lru_cache

import matplotlib as mpl
import numpy as np
from PIL import Image

from hookviz.drawing import colormaps
from hookviz.drawing.colormaps import LEVELS
from hookviz.drawing.statistics import Levels


@lru_cache
def palette_of(name: str) -> Levels:
    """RGBA of every level, uint8, ``(256, 4)``, read-only."""
    palette = np.zeros((256, 4), dtype=np.uint8)
    palette[:LEVELS] = mpl.colormaps[name].resampled(LEVELS)(np.arange(LEVELS), bytes=True)
    for level, colour in (
        (colormaps.NAN_LEVEL, colormaps.NAN_COLOUR),
        (colormaps.INF_LEVEL, colormaps.INF_COLOUR),
    ):
        palette[level] = *bytes.fromhex(colour[1:]), 255
    palette.flags.writeable = False
    return palette


def palette_png(picture: Levels, palette: Levels, *, packing: str = "small") -> bytes:
    """Palette indices, uint8 ``(height, width)``, as a PNG file.

    Where hardly a pixel is like its neighbour, the packing ``"quick"`` takes half of the time or
    less, for a file that is a few hundredths larger or smaller. ``"none"`` takes a tenth of that.
    """
    height, width = picture.shape
    image = Image.frombuffer("P", (width, height), picture.tobytes(), "raw", "P", 0, 1)
    image.putpalette(palette[:, :3].tobytes())
    file = io.BytesIO()
    # Level 1 is a quarter larger than level 6 and five times as fast.
    how = {"compress_level": 0} if packing == "none" else {"compress_level": 1}
    if packing == "quick":
        how["compress_type"] = zlib.Z_RLE
    image.save(file, "PNG", transparency=palette[:, 3].tobytes(), **how)
    return file.getvalue()
