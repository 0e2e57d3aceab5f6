"""Small square pictures of images and of inputs."""

import numpy as np
from PIL import Image, ImageOps

from hookviz.drawing.overlay import input_picture
from hookviz.types import ModelInput, Pixels


def thumbnail(picture: Pixels, side: int) -> Pixels:
    """The middle square of a picture, ``(side, side, 3)``, RGB uint8."""
    fitted = ImageOps.fit(Image.fromarray(picture), (side, side), Image.Resampling.BILINEAR)
    small: Pixels = np.asarray(fitted)
    return small


def input_thumbnail(model_input: ModelInput, side: int) -> Pixels:
    """What the network saw, or a grey picture of it, `side` pixels square."""
    return thumbnail(input_picture(model_input), side)
