"""The picture that a lesson's part shows of what the network gets, in colour and in grey."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hookviz.lessons.part import Scene
from hookviz.types import Pixels

_RED, _GREEN, _BLUE = 0.299, 0.587, 0.114
"""Shares of the colours in brightness, as ITU-R BT.601 and Pillow have them."""


def picture_of(scene: Scene) -> Pixels:
    """What the network gets as RGB uint8 ``(H, W, 3)``; else the image that it was made from."""
    picture = scene.model_input.picture
    return scene.image.pixels if picture is None else picture


def grey_of(scene: Scene, side: int) -> NDArray[np.float32]:
    """The picture's brightness, 0 black to 1 white, ``(H, W)``, at most `side` cells on a side."""
    picture = picture_of(scene)
    height, width = picture.shape[:2]
    if max(height, width) > side:
        share = side / max(height, width)
        size = max(1, round(width * share)), max(1, round(height * share))
        picture = np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.BOX))
    weights = np.array([_RED, _GREEN, _BLUE], np.float32)
    return np.asarray((picture.astype(np.float32) / 255) @ weights, np.float32)
