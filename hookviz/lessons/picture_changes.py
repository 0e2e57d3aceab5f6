"""Change a picture as a learner can: shift it, turn it, darken it, add noise.

What comes in from beyond the edge is the picture mirrored, so that no black border is what the
network answers to.
"""

import numpy as np
from PIL import Image

from hookviz.types import Pixels

_SEED = 20


def shifted(picture: Pixels, right: int, down: int) -> Pixels:
    """Shift a picture by whole pixels, RGB uint8 ``(H, W, 3)``."""
    rows, columns = picture.shape[:2]
    reach_down, reach_right = min(abs(down), rows - 1), min(abs(right), columns - 1)
    wide = np.pad(picture, ((reach_down,) * 2, (reach_right,) * 2, (0, 0)), mode="reflect")
    top = reach_down - int(np.clip(down, -reach_down, reach_down))
    left = reach_right - int(np.clip(right, -reach_right, reach_right))
    moved: Pixels = wide[top : top + rows, left : left + columns].copy()
    return moved


def turned(picture: Pixels, degrees: float) -> Pixels:
    """Turn a picture about its middle, clockwise, RGB uint8 ``(H, W, 3)``."""
    if degrees % 360 == 0:
        return picture.copy()
    rows, columns = picture.shape[:2]
    reach = [(side - 1) // 2 for side in (rows, columns)]
    wide = np.pad(picture, ((reach[0],) * 2, (reach[1],) * 2, (0, 0)), mode="reflect")
    round_middle = Image.fromarray(wide).rotate(-degrees, Image.Resampling.BICUBIC)
    pixels: Pixels = np.asarray(round_middle)[
        reach[0] : reach[0] + rows, reach[1] : reach[1] + columns
    ].copy()
    return pixels


def brightened(picture: Pixels, percent: float) -> Pixels:
    """Scale every number of a picture, RGB uint8 ``(H, W, 3)``, to `percent`, at most to 255."""
    scaled = np.rint(picture.astype(np.float64) * percent / 100)
    return np.clip(scaled, 0, 255).astype(np.uint8)


def noisy(picture: Pixels, levels: int) -> Pixels:
    """Move every number up or down by `levels` of 255 at random, the same each time, within 0…255.

    The sizes are those of a picture made to fool a network, so that the two compare.
    """
    signs = np.random.default_rng(_SEED).integers(0, 2, picture.shape, np.int16) * 2 - 1
    changed: Pixels = np.clip(picture.astype(np.int16) + levels * signs, 0, 255).astype(np.uint8)
    return changed
