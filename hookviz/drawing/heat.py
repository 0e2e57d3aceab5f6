"""A map laid over what the network saw, and over the image that it came from."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from hookviz.drawing.overlay import overlay
from hookviz.types import Crop, InputImage, ModelInput, Pixels

Numbers = NDArray[np.floating[Any]]


def resized(values: Numbers, height: int, width: int) -> Numbers:
    """A map, ``(H, W)``, made smooth and ``(height, width)``: linear between the cells' middles."""
    tensor = torch.from_numpy(np.ascontiguousarray(values, np.float32))[None, None]
    smooth = F.interpolate(tensor, (height, width), mode="bilinear", align_corners=False)
    made: Numbers = smooth[0, 0].numpy()
    return made


def end_of(values: Numbers, percentile: float = 100) -> float:
    """What the end colour of a map stands for: a percentile of |values|, and never 0.

    Only finite values count; without any that is not 0 it is 1.
    """
    sizes = np.abs(values[np.isfinite(values)])
    if not sizes.any():
        return 1.0
    return float(np.percentile(sizes, percentile)) or float(sizes.max())


def over_input(made: ModelInput, colours: Pixels, *, opacity: float = 0.6) -> Pixels:
    """A coloured map, ``(rows, columns, 3)``, over what the network saw, all of it: RGB uint8.

    An input without a picture is drawn in grey, from its lowest to its highest value.
    """
    picture = made.picture if made.picture is not None else _drawn(made.tensor)
    height, width = picture.shape[:2]
    whole = Crop(left=0, top=0, right=width, bottom=height, height=height, width=width)
    return overlay(picture, colours, whole, opacity=opacity)


def over_image(
    made: ModelInput, image: InputImage | None, colours: Pixels, *, opacity: float = 0.6
) -> Pixels:
    """A coloured map, ``(rows, columns, 3)``, over the original where the network saw it.

    Where the original or the crop is not known, it is as `over_input`.
    """
    if image is None or made.crop is None:
        return over_input(made, colours, opacity=opacity)
    return overlay(image.pixels, colours, made.crop, opacity=opacity)


def _drawn(tensor: Tensor) -> Pixels:
    """An input tensor, ``(1, C, H, W)``, as a grey picture: the mean over its channels."""
    values = tensor[0].mean(0).numpy()
    span = float(values.max() - values.min()) or 1.0
    grey = np.rint((values - values.min()) / span * 255).astype(np.uint8)
    drawn: Pixels = np.repeat(grey[..., None], 3, axis=2)
    return drawn
