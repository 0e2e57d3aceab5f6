"""What belongs on an image: a channel's map laid over it, and a cell's receptive field."""

import numpy as np
from PIL import Image

from hookviz.drawing.colormaps import ACCENT
from hookviz.errors import SettingError
from hookviz.types import Crop, Pixels

_DARKER = 0.45  # what is left of the light outside a receptive field


def overlay(
    image: Pixels, colours: Pixels, crop: Crop, *, opacity: float = 0.6, side: int = 640
) -> Pixels:
    """The image with a map over the part of it that the network saw.

    Every cell of the map covers the same share of the crop, and stays a block with sharp edges. It
    stands where its receptive field has its centre when the layers before pad evenly; with uneven
    padding it is off by less than a cell.

    Args:
        image: the original, RGB uint8, ``(H, W, 3)``.
        colours: the coloured map, RGB uint8, ``(rows, columns, 3)``.
        crop: which part of `image` the network saw.
        opacity: of the map, 0…1.
        side: the longer side of the result in pixels.

    Returns:
        RGB uint8, ``(h, w, 3)``, with the longer of h and w equal to `side`.

    Raises:
        SettingError: `opacity` is not from 0 to 1.
    """
    if not 0 <= opacity <= 1:
        raise SettingError(f"opacity={opacity!r} is not from 0 (unseen) to 1 (alone).")
    height, width = image.shape[:2]
    scale = side / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    below = np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BILINEAR))
    shown = below.copy()
    # Which cell lies over each pixel's middle; below 0 or past the end where none does.
    ys = (np.arange(size[1]) + 0.5) / size[1] * height
    xs = (np.arange(size[0]) + 0.5) / size[0] * width
    rows = np.floor((ys - crop.top) / (crop.bottom - crop.top) * colours.shape[0]).astype(int)
    columns = np.floor((xs - crop.left) / (crop.right - crop.left) * colours.shape[1]).astype(int)
    seen_y = np.flatnonzero((rows >= 0) & (rows < colours.shape[0]))
    seen_x = np.flatnonzero((columns >= 0) & (columns < colours.shape[1]))
    if not (seen_y.size and seen_x.size):
        return shown
    part = np.ix_(seen_y, seen_x)
    over = colours[np.ix_(rows[seen_y], columns[seen_x])].astype(float)
    shown[part] = np.rint((1 - opacity) * below[part] + opacity * over).astype(np.uint8)
    return shown


def outlined(
    picture: Pixels, box: tuple[int, int, int, int], *, colour: str = ACCENT, side: int = 480
) -> Pixels:
    """The picture with one rectangle of it framed, and everything else darkened.

    Every pixel becomes a square of whole pixels, so that a frame never cuts one.

    Args:
        picture: RGB uint8, ``(H, W, 3)``.
        box: top, left, bottom, right in its pixels; the last row and column are not included.
        colour: of the frame, ``"#rrggbb"``.
        side: about how many pixels the longer side shall have.

    Returns:
        RGB uint8, ``(H·k, W·k, 3)`` for a whole k.
    """
    step = max(1, round(side / max(picture.shape[:2])))
    large = picture.repeat(step, 0).repeat(step, 1)
    top, left, bottom, right = (step * place for place in box)
    shown = (large * _DARKER).astype(np.uint8)
    shown[top:bottom, left:right] = large[top:bottom, left:right]
    edge = max(2, side // 200)
    height, width = shown.shape[:2]
    outer = (max(0, top - edge), max(0, left - edge), min(height, bottom + edge))
    frame = np.zeros((height, width), dtype=bool)
    frame[outer[0] : outer[2], outer[1] : min(width, right + edge)] = True
    frame[
        max(top, edge) : min(bottom, height - edge), max(left, edge) : min(right, width - edge)
    ] = False
    shown[frame] = tuple(bytes.fromhex(colour[1:]))
    return shown
