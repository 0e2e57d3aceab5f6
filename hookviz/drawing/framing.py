"""A receptive field framed on a picture."""

import numpy as np

from hookviz.drawing.colours import ACCENT
from hookviz.types import Pixels

_DARKER = 0.45  # what is left of the light outside a receptive field


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
    top, left, bottom, right = (step * edge for edge in box)
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
