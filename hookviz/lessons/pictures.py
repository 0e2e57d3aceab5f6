"""Draw the image of a lesson: in colour, in grey, under a map, with a field framed on it, changed.

A changed picture is shifted, turned, brightened or noisy. Beyond its edge it is mirrored, so that
the network does not answer to a black border.
"""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hookviz.drawing.overlay import (
    framed,
    input_picture,
    laid_over,
    on_input,
    on_picture,
    over_image,
    shrunk,
)
from hookviz.drawing.pictures import Resampling, fit_size, resize
from hookviz.explaining.receptive_fields.receptive_field import Box
from hookviz.lessons.part import LessonScene
from hookviz.types import Pixels

_SIDE = 480  # pixels of a photograph's longer side
_RED, _GREEN, _BLUE = 0.299, 0.587, 0.114
"""Shares of the colours in brightness, as ITU-R BT.601 and Pillow have them."""


def picture_of(scene: LessonScene) -> Pixels:
    """Return what the network gets, RGB uint8 ``(H, W, 3)``; else the image it was made from."""
    picture = scene.model_input.picture
    return scene.image.pixels if picture is None else picture


def grey_of(scene: LessonScene, side: int) -> NDArray[np.float32]:
    """Return the picture's brightness, 0 black to 1 white, ``(H, W)``, at most `side` on a side."""
    return brightness(picture_of(scene), side)


def brightness(picture: Pixels, side: int) -> NDArray[np.float32]:
    """Return a picture's brightness, 0 black to 1 white, ``(H, W)``, at most `side` on a side."""
    if max(picture.shape[:2]) > side:
        picture = resize(picture, fit_size(picture, side), Resampling.BOX)
    weights = np.array([_RED, _GREEN, _BLUE], np.float32)
    return np.asarray((picture.astype(np.float32) / 255) @ weights, np.float32)


def photograph(
    scene: LessonScene,
    colours: Pixels | None = None,
    box: Box | None = None,
    *,
    opacity: float = 0.6,
) -> Pixels:
    """Return the lesson's image, RGB uint8 ``(h, w, 3)``; without a crop, what the network got.

    Args:
        scene: whose image.
        colours: a map's colours, ``(rows, columns, 3)``, to lay over what the network sees of it.
        box: top, left, bottom, right in pixels of the network's input, to be framed.
        opacity: of the map, 0…1.
    """
    model_input, image = scene.model_input, scene.image
    if model_input.crop is None:
        picture = shrunk(input_picture(model_input), _SIDE)
        if colours is not None:
            picture = over_image(model_input, None, colours, opacity=opacity)
        sides = tuple(model_input.tensor.shape[2:])
        return picture if box is None else on_input(picture, box, sides)
    picture = shrunk(image.pixels, _SIDE)
    if colours is not None:
        picture = laid_over(picture, colours, model_input.crop, image.pixels.shape, opacity=opacity)
    if box is not None:
        picture = framed(picture, on_picture(box, model_input.crop, image, picture.shape[:2]))
    return picture


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
