"""Lay a coloured map, or the frame of a receptive field, over an image or a network's input.

Before it is coloured, a map of evidence is made smooth, and told what its end colour stands for.
"""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from hookviz.drawing.pictures import Resampling, fit_size, resize, thumbnail
from hookviz.errors import SettingError
from hookviz.language.saying import say
from hookviz.types import Crop, InputImage, ModelInput, Pixels

Numbers = NDArray[np.floating[Any]]

_FRAMED_PX = 640  # longer side of an image with a frame, as with a map


def resized(values: Numbers, height: int, width: int) -> Numbers:
    """Make a map, ``(H, W)``, smooth and ``(height, width)``, linear between its cells' middles."""
    tensor = torch.from_numpy(np.ascontiguousarray(values, np.float32))[None, None]
    interpolated = F.interpolate(tensor, (height, width), mode="bilinear", align_corners=False)
    smooth: Numbers = interpolated[0, 0].numpy()
    return smooth


BRIGHT = 99
"""Percentile with the end colour of a map of pixels: a few would darken all others."""


def color_limit(values: Numbers, percentile: float = 100) -> float:
    """Return what the end colour of a map stands for: a percentile of |values|, and never 0.

    Only finite values count; without any that is not 0 it is 1.
    """
    sizes = np.abs(values[np.isfinite(values)])
    if not sizes.any():
        return 1.0
    return float(np.percentile(sizes, percentile)) or float(sizes.max())


def overlay(
    image: Pixels, colours: Pixels, crop: Crop, *, opacity: float = 0.6, side: int = 640
) -> Pixels:
    """Lay a map over the part of an image that the network saw.

    Every cell of the map covers the same share of the crop, and stays a block with sharp edges. It
    stands where its receptive field has its centre when the layers before pad evenly; with uneven
    padding it is off by less than a cell.

    The image is RGB uint8, ``(H, W, 3)``, the coloured map ``(rows, columns, 3)``; `crop` is the
    part of the image that the network saw. The longer side of the result is `side` pixels.

    Returns:
        RGB uint8, ``(h, w, 3)``, with the longer of h and w equal to `side`.

    Raises:
        SettingError: `opacity` is not from 0 to 1.
    """
    return laid_over(shrunk(image, side), colours, crop, image.shape[:2], opacity=opacity)


def shrunk(image: Pixels, side: int) -> Pixels:
    """Resize an image, ``(H, W, 3)``, to `side` pixels along its longer side."""
    return resize(image, fit_size(image, side), Resampling.BILINEAR)


def laid_over(
    small: Pixels, colours: Pixels, crop: Crop, size: tuple[int, ...], *, opacity: float = 0.6
) -> Pixels:
    """Lay a map as `overlay` does, over a small picture of an image of that `size` (H, W)."""
    if not 0 <= opacity <= 1:
        raise SettingError(
            say("opacity={opacity!r} is not from 0 (unseen) to 1 (alone).", opacity=opacity)
        )
    shown = small.copy()
    rows, down = _cells(small.shape[0], size[0], (crop.top, crop.bottom), colours.shape[0])
    columns, across = _cells(small.shape[1], size[1], (crop.left, crop.right), colours.shape[1])
    over = colours * np.float32(opacity)  # while it is small
    part = shown[down, across]
    blended = part * np.float32(1 - opacity)
    blended += over[rows][:, columns]
    part[...] = np.rint(blended, out=blended)
    return shown


def _cells(
    pixels: int, length: int, part: tuple[float, float], cells: int
) -> tuple[NDArray[np.intp], slice]:
    """Return the cell over the middle of each pixel of an axis, and which pixels have one."""
    middles = (np.arange(pixels) + 0.5) / pixels * length
    cell = np.floor((middles - part[0]) / (part[1] - part[0]) * cells).astype(np.intp)
    covered = np.flatnonzero((cell >= 0) & (cell < cells))  # one run of them
    first, last = (covered[0], covered[-1] + 1) if covered.size else (0, 0)
    return cell[first:last], slice(first, last)


def input_picture(model_input: ModelInput) -> Pixels:
    """Return what the network sees, RGB uint8 ``(H, W, 3)``; in grey if it was given no picture."""
    return (
        model_input.picture
        if model_input.picture is not None
        else _grey_picture(model_input.tensor)
    )


def input_thumbnail(model_input: ModelInput, side: int) -> Pixels:
    """Return a `thumbnail` of the input's picture, or of a grey picture of it."""
    return thumbnail(input_picture(model_input), side)


def original_and_crop(model_input: ModelInput, image: InputImage | None) -> tuple[Pixels, Crop]:
    """Return the original and the part that the network saw; all of the input if unknown."""
    if image is not None and model_input.crop is not None:
        return image.pixels, model_input.crop
    picture = input_picture(model_input)
    height, width = picture.shape[:2]
    return picture, Crop(left=0, top=0, right=width, bottom=height, height=height, width=width)


def over_image(
    model_input: ModelInput, image: InputImage | None, colours: Pixels, *, opacity: float = 0.6
) -> Pixels:
    """Lay a coloured map, ``(rows, columns, 3)``, over the original where the network saw it.

    Where the original or the crop is not known, the map lies over all that the network saw. An
    input without a picture is drawn in grey, from its lowest to its highest value.
    """
    picture, crop = original_and_crop(model_input, image)
    return overlay(picture, colours, crop, opacity=opacity)


def _grey_picture(tensor: Tensor) -> Pixels:
    """Draw an input tensor, ``(1, C, H, W)``, as a grey picture: the mean over its channels."""
    values = tensor[0].mean(0).numpy()
    finite = values[np.isfinite(values)]
    low = float(finite.min()) if finite.size else 0.0
    span = (float(finite.max()) - low if finite.size else 0.0) or 1.0
    grey = np.rint(np.nan_to_num(np.clip((values - low) / span, 0, 1)) * 255).astype(np.uint8)
    drawn: Pixels = np.repeat(grey[..., None], 3, axis=2)
    return drawn


def framed(picture: Pixels, box: tuple[int, int, int, int]) -> Pixels:
    """Frame a rectangle of a picture in white and black, seen on any ground.

    The picture is RGB uint8, ``(H, W, 3)``. The box is top, left, bottom, right in its pixels; the
    last row and column are not included.

    Returns:
        RGB uint8, ``(H, W, 3)``.
    """
    shown = picture.copy()
    height, width = picture.shape[:2]
    for grown, level in ((4, 0), (2, 255)):
        top, left = max(0, box[0] - grown), max(0, box[1] - grown)
        bottom, right = min(height, box[2] + grown), min(width, box[3] + grown)
        for edge in (
            (slice(top, top + 2), slice(left, right)),
            (slice(max(top, bottom - 2), bottom), slice(left, right)),
            (slice(top, bottom), slice(left, left + 2)),
            (slice(top, bottom), slice(max(left, right - 2), right)),
        ):
            shown[edge] = level
    return shown


def on_picture(
    box: tuple[int, int, int, int], crop: Crop, image: InputImage, size: tuple[int, ...]
) -> tuple[int, int, int, int]:
    """Convert a rectangle of a network's input into pixels of a picture of the whole image.

    The box is top, left, bottom, right in pixels of the input, `crop` the part of the image that
    the input shows, and `size` the height and width of the picture.
    """
    down = (crop.bottom - crop.top) / crop.height * size[0] / image.height
    across = (crop.right - crop.left) / crop.width * size[1] / image.width
    top, left = crop.top * size[0] / image.height, crop.left * size[1] / image.width
    return (
        round(top + box[0] * down),
        round(left + box[1] * across),
        round(top + box[2] * down),
        round(left + box[3] * across),
    )


def on_image(
    model_input: ModelInput, image: InputImage | None, box: tuple[int, int, int, int]
) -> Pixels:
    """Frame a rectangle of an input, in its pixels, on the original image, RGB uint8.

    Where the original or the crop is not known, it is framed on all that the network saw.
    """
    if image is None or model_input.crop is None:
        picture = shrunk(input_picture(model_input), _FRAMED_PX)
        return on_input(picture, box, tuple(model_input.tensor.shape[-2:]))
    picture = shrunk(image.pixels, _FRAMED_PX)
    return framed(picture, on_picture(box, model_input.crop, image, picture.shape[:2]))


def on_input(picture: Pixels, box: tuple[int, int, int, int], sides: tuple[int, ...]) -> Pixels:
    """Frame a rectangle of an input on a picture of all of it, RGB uint8.

    The picture is RGB uint8, ``(H, W, 3)``, of any size. The box is top, left, bottom, right in
    pixels of the input, whose height and width are `sides`.
    """
    down, across = (shown / side for shown, side in zip(picture.shape[:2], sides, strict=True))
    top, left, bottom, right = box
    scaled = round(top * down), round(left * across), round(bottom * down), round(right * across)
    return framed(picture, scaled)
