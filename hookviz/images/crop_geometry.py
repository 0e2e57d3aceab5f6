"""Compute which part of an image a resize and centre crop shows, and cut that out."""

import math
from dataclasses import dataclass

from PIL import Image
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F  # its name everywhere

from hookviz.settings import settings
from hookviz.types import Crop, InputImage, Preprocess

FILTER_REACH = {"bilinear": 1.0, "bicubic": 2.0}
"""How far Pillow's filters reach, in output pixels, by the interpolation's name."""

_DETOUR = 32_000_000  # an intermediate image of more pixels (128 MB) is avoided


@dataclass(frozen=True, slots=True)
class CropAxis:
    """One dimension of a resize and centre crop, in pixels.

    Attributes:
        source: length of the original.
        resized: its length after resizing, which is not made in full where that would be large.
        start: where the crop starts in the resized image; negative where it reaches past it.
        length: of the crop.
    """

    source: int
    resized: int
    start: int
    length: int

    def to_source(self, position: float) -> float:
        """Return a position in the crop as a position in the original."""
        return (self.start + position) * self.source / self.resized

    @property
    def visible(self) -> tuple[int, int]:
        """Part of the crop that lies within the image."""
        return max(0, -self.start), min(self.length, self.resized - self.start)


def crop_axes(image: InputImage, preprocess: Preprocess, side: int) -> tuple[CropAxis, CropAxis]:
    """Return rows and columns of torchvision's `resize` to the shorter side and `center_crop`."""
    target = max(1, round(preprocess.resize * side / preprocess.crop))
    short = min(image.height, image.width)
    axes = []
    for source in (image.height, image.width):
        resized = int(target * source / short)  # as torchvision rounds it: down
        margin = resized - side
        start = -(-margin // 2) if margin < 0 else round(margin / 2.0)
        axes.append(CropAxis(source, resized, start, side))
    return axes[0], axes[1]


def whole_axes(image: InputImage, side: int, min_size: int) -> tuple[CropAxis, CropAxis]:
    """Return rows and columns of the whole image with its shorter side at `side`."""
    largest = max(settings().max_input, side)
    short, long = sorted((image.height, image.width))
    scale = min(side / short, largest / long)
    rows, columns = (
        CropAxis(source, length, 0, length)
        for source in (image.height, image.width)
        for length in (max(min(min_size, side), 1, round(source * scale)),)
    )
    return rows, columns


def crop_between(rows: CropAxis, columns: CropAxis) -> Crop:
    """Return which part of the original the crop along both axes shows."""
    return Crop(
        left=columns.to_source(0),
        top=rows.to_source(0),
        right=columns.to_source(columns.length),
        bottom=rows.to_source(rows.length),
        height=rows.length,
        width=columns.length,
    )


def resize_and_crop(
    picture: Image.Image, rows: CropAxis, columns: CropAxis, interpolation: str
) -> Image.Image:
    """Resize and crop `picture` as `rows` and `columns` say, black outside of the image."""
    mode = InterpolationMode(interpolation)
    if rows.resized * columns.resized <= _DETOUR:
        # antialias only matters for tensors: Pillow always filters, and False makes it warn
        picture = F.resize(picture, [rows.resized, columns.resized], mode, antialias=True)
        return picture.crop(
            (columns.start, rows.start, columns.start + columns.length, rows.start + rows.length)
        )
    (top, bottom), (left, right) = rows.visible, columns.visible
    # The part of the original that the crop needs is cut out first, with what the filter reaches:
    # Pillow keeps the box as float32, which is exact enough for small numbers only.
    first_row, last_row = _reach(rows, interpolation)
    first_column, last_column = _reach(columns, interpolation)
    part = picture.crop((first_column, first_row, last_column, last_row))
    box = (
        max(0.0, columns.to_source(left) - first_column),
        max(0.0, rows.to_source(top) - first_row),
        min(float(part.width), columns.to_source(right) - first_column),
        min(float(part.height), rows.to_source(bottom) - first_row),
    )
    resample = Image.Resampling[interpolation.upper()]
    canvas = Image.new(picture.mode, (columns.length, rows.length))
    canvas.paste(part.resize((right - left, bottom - top), resample, box=box), (left, top))
    return canvas


def _reach(axis: CropAxis, interpolation: str) -> tuple[int, int]:
    """Return the first and last pixel, exclusive, of the original that the crop depends on."""
    margin = FILTER_REACH[interpolation] * max(1.0, axis.source / axis.resized) + 1
    low, high = (axis.to_source(position) for position in axis.visible)
    return max(0, math.floor(low - margin)), min(axis.source, math.ceil(high + margin))
