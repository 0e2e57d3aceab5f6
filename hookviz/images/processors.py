"""Call another library's image processor as a function, and find which part of an image it shows.

1. Take the steps that the processor declares: sizes, crop, mean and deviation.
2. Make the picture that each reading of them gives.
3. Compare it with the processor's own tensor; the part is known where one of them agrees.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from hookviz.images.crop_geometry import CropAxis, crop_between, resize_and_crop
from hookviz.types import Crop, InputImage, Pixels

_FILTERS = {3: "bicubic", "bicubic": "bicubic"}  # by what Pillow and torchvision call them
_MOST_LEVELS = 1.0  # of 255, by which a picture may differ in the mean: filters round otherwise


@dataclass(frozen=True, repr=False)
class ImageProcessor:
    """Image processor, such as Hugging Face's, as a function from an RGB Pillow image.

    Attributes:
        processor: called with ``images=`` and ``return_tensors=``, it returns ``pixel_values``.
    """

    processor: Any

    def __repr__(self) -> str:
        return type(self.processor).__name__

    def __call__(self, image: Image.Image) -> Any:
        """Return the processor's tensor, ``(C, H, W)``."""
        return pixel_values(self.processor(images=image, return_tensors="pt"))[0]

    def shown(self, image: InputImage, tensor: Tensor) -> tuple[Pixels, Crop] | tuple[None, None]:
        """Return the picture of an input, ``(1, 3, H, W)``, and its part of the image, if known."""
        if tensor.shape[1] != 3:
            return None, None
        levels = self._levels(tensor[0]).numpy()
        height, width = levels.shape[:2]
        source = Image.fromarray(image.pixels)
        resample = self._declared("resample", "bilinear")
        filter_name = _FILTERS.get(getattr(resample, "value", resample), "bilinear")
        for rows, columns in self._resized(image, height, width):
            if rows < height or columns < width:
                continue
            axes = (
                CropAxis(image.height, rows, (rows - height) // 2, height),
                CropAxis(image.width, columns, (columns - width) // 2, width),
            )
            made = np.asarray(resize_and_crop(source, *axes, filter_name), dtype=np.float32)
            if np.abs(made - levels).mean() <= _MOST_LEVELS:
                picture = levels.round().clip(0, 255).astype(np.uint8)
                picture.setflags(write=False)
                return picture, crop_between(*axes)
        return None, None

    def _levels(self, values: Tensor) -> Tensor:
        """Return values before rescaling and normalising, ``(H, W, C)``, from 0 to 255."""
        if self._declared("do_normalize", fallback=False):
            mean, std = (
                torch.tensor(self._declared(f"image_{name}", fallback)).float().reshape(-1, 1, 1)
                for name, fallback in (("mean", 0.0), ("std", 1.0))
            )
            values = values * std + mean
        if self._declared("do_rescale", fallback=False):
            values = values / self._declared("rescale_factor", 1 / 255)
        return values.movedim(0, -1).float()

    def _resized(self, image: InputImage, height: int, width: int) -> Iterator[tuple[int, int]]:
        """Yield rows and columns that the whole image may have been resized to, likeliest first."""
        size = self._declared("size", {})
        size = size if hasattr(size, "get") else {"shortest_edge": size}
        edge, short = size.get("shortest_edge"), min(image.height, image.width)
        for side in (edge, edge and int(edge / self._declared("crop_pct", 1.0))):
            if side:
                yield int(side * image.height / short), int(side * image.width / short)
        if size.get("height") and size.get("width"):
            yield size["height"], size["width"]
        yield height, width

    def _declared(self, name: str, fallback: Any) -> Any:
        value = getattr(self.processor, name, None)
        return fallback if value is None else value


def as_function(steps: Any) -> Any:
    """Return preprocessing as it is given, an image processor as an `ImageProcessor`.

    Of a processor of images and text, such as CLIP's, the part for images.
    """
    processor = getattr(steps, "image_processor", steps)
    is_processor = callable(processor) and callable(getattr(processor, "preprocess", None))
    return ImageProcessor(processor) if is_processor else steps


def pixel_values(returned: Any) -> Any:
    """Return the image in what a processor returned, its ``pixel_values``; all else as it is."""
    if not isinstance(returned, Mapping) or "pixel_values" not in returned:
        return returned
    values = returned["pixel_values"]
    if isinstance(values, list) and len(values) == 1:
        values = values[0]
    return torch.as_tensor(values) if isinstance(values, np.ndarray) else values
