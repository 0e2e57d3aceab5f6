"""A coloured map laid over an image, or over what the network saw of it."""

import numpy as np
from PIL import Image
from torch import Tensor

from hookviz.errors import SettingError
from hookviz.types import Crop, InputImage, ModelInput, Pixels


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


def over_input(model_input: ModelInput, colours: Pixels, *, opacity: float = 0.6) -> Pixels:
    """A coloured map, ``(rows, columns, 3)``, over what the network saw, all of it: RGB uint8.

    An input without a picture is drawn in grey, from its lowest to its highest value.
    """
    picture = input_picture(model_input)
    height, width = picture.shape[:2]
    whole = Crop(left=0, top=0, right=width, bottom=height, height=height, width=width)
    return overlay(picture, colours, whole, opacity=opacity)


def input_picture(model_input: ModelInput) -> Pixels:
    """What the network sees, RGB uint8 ``(H, W, 3)``; in grey where it was given no picture."""
    return model_input.picture if model_input.picture is not None else _drawn(model_input.tensor)


def over_image(
    model_input: ModelInput, image: InputImage | None, colours: Pixels, *, opacity: float = 0.6
) -> Pixels:
    """A coloured map, ``(rows, columns, 3)``, over the original where the network saw it.

    Where the original or the crop is not known, it is as `over_input`.
    """
    if image is None or model_input.crop is None:
        return over_input(model_input, colours, opacity=opacity)
    return overlay(image.pixels, colours, model_input.crop, opacity=opacity)


def _drawn(tensor: Tensor) -> Pixels:
    """An input tensor, ``(1, C, H, W)``, as a grey picture: the mean over its channels."""
    values = tensor[0].mean(0).numpy()
    finite = values[np.isfinite(values)]
    low = float(finite.min()) if finite.size else 0.0
    span = (float(finite.max()) - low if finite.size else 0.0) or 1.0
    grey = np.rint(np.nan_to_num(np.clip((values - low) / span, 0, 1)) * 255).astype(np.uint8)
    drawn: Pixels = np.repeat(grey[..., None], 3, axis=2)
    return drawn
