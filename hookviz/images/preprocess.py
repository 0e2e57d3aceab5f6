"""An `InputImage` becomes a model's input tensor, with the geometry of what it shows kept.

Over 300 lines: its sentences for people stand whole, with a line for each fact.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F  # its name everywhere

from hookviz.errors import HookVizError, ImageError, ModelError, shorten
from hookviz.language.saying import say
from hookviz.settings import settings
from hookviz.types import Crop, InputImage, ModelInput, Pixels, Preprocess

_SUPPORT = {"bilinear": 1.0, "bicubic": 2.0}  # how far Pillow's filters reach, in output pixels
_DETOUR = 32_000_000  # an intermediate image of more pixels (128 MB) is avoided


@dataclass(frozen=True, slots=True)
class _Axis:
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
        """A position in the crop as a position in the original."""
        return (self.start + position) * self.source / self.resized

    @property
    def visible(self) -> tuple[int, int]:
        """Which part of the crop lies within the image."""
        return max(0, -self.start), min(self.length, self.resized - self.start)


def prepare(
    image: InputImage,
    preprocess: Preprocess | Callable[[Image.Image], Tensor],
    *,
    size: int | None = None,
    whole: bool = False,
    min_size: int = 1,
) -> ModelInput:
    """The input that `preprocess` makes of `image`, ``(1, C, H, W)``, and what part it shows.

    With a `Preprocess` the tensor equals that of torchvision's ``weights.transforms()`` on the
    Pillow image, bit for bit. The exception are images so long and thin that resizing them as a
    whole would make more than 32 million pixels (1 × 4000 becomes 256 × 1,024,000): of these only
    the part that the crop shows is resized, with positions rounded to float32, so that a value
    may differ by one level of 255 (by more where bicubic overshoots beside a hard edge). Where the
    model crops more than it resizes to, the input is padded with black as torchvision does it, and
    the crop reaches past the image.

    Args:
        image: what to show the model.
        preprocess: the model's own steps, or a function from an RGB Pillow image to ``(C, H, W)``.
        size: side of the input in pixels instead of the model's own; resize and crop are scaled in
            the same proportion.
        whole: show the whole image, uncropped: its shorter side gets the length of the crop, and
            the aspect ratio is kept. A longer side above ``settings().max_input`` is reduced to
            that, and the shorter with it, though never below `min_size`, or `size` where that is
            less; there, for images such as 1 × 4000, the aspect ratio is given up.
        min_size: the smallest side that the model is meant to take. A smaller `size` is made all
            the same: whether the network takes it shows in its pass.

    Raises:
        ImageError: `size` is out of range, or the model takes neither RGB nor greyscale.
        ModelError: the preprocess makes no sense, or its function failed or returned no input.
        HookVizError: `size` or `whole` together with a function, which decides that itself.
    """
    if not isinstance(preprocess, Preprocess):
        if size is not None or whole:
            raise HookVizError(
                say(
                    "This model prepares its images with its own function, which decides the "
                    "input size and the crop; leave out size and whole, or wrap the model with a "
                    "Preprocess."
                )
            )
        return _from_function(image, preprocess)
    _check(preprocess)
    picture = Image.fromarray(image.pixels)
    if preprocess.channels == 1:
        picture = picture.convert("L")  # luma by ITU-R 601-2, Pillow's only grey
    side = preprocess.crop if size is None else _checked_size(size)
    if whole:
        rows, columns = _whole(image, side, min_size)
    else:
        rows, columns = _cropped(image, preprocess, side)
    picture = _resized(picture, rows, columns, preprocess.interpolation)
    # From here on these are the steps of torchvision's presets.
    levels = F.convert_image_dtype(F.pil_to_tensor(picture), torch.float)
    values = F.normalize(levels, mean=list(preprocess.mean), std=list(preprocess.std))
    crop = Crop(
        left=columns.to_source(0),
        top=rows.to_source(0),
        right=columns.to_source(columns.length),
        bottom=rows.to_source(rows.length),
        height=rows.length,
        width=columns.length,
    )
    shown = np.array(picture.convert("RGB"))
    shown.setflags(write=False)
    return _input(values.unsqueeze(0), shown, crop)


def from_tensor(tensor: Tensor, form: str = "C, H, W") -> ModelInput:
    """A float tensor of ``(C, H, W)`` or ``(1, C, H, W)`` as an input, its values untouched.

    `form` names the dimensions that the network takes: ``"C, L"`` for sound, ``"C, D, H, W"`` for
    volumes.

    It stays float64 where it is that; half precisions become float32, which holds all of them.

    It is copied, so that later changes to `tensor` don't reach the input; there is no picture and
    no crop.

    Raises:
        ImageError: it has another shape, more than one image, no values, or whole numbers.
    """
    wrong = _fault(tensor, form)
    if wrong:
        raise ImageError(
            say(
                "The input is {problem}; give one image as a float tensor of ({axes}) or (1, "
                "{axes}), normalised as the model expects it.",
                problem=wrong,
                axes=form,
            )
        )
    return _input(_batched(tensor, form), None, None)


def _from_function(image: InputImage, function: Callable[[Image.Image], Tensor]) -> ModelInput:
    label = shorten(repr(function))
    try:
        returned = function(Image.fromarray(image.pixels))
    except HookVizError:
        raise
    except Exception as error:  # the function is the caller's own: anything can come out of it
        raise ModelError(
            say(
                "The model's preprocess {label} failed on {image!r}: {name}: {error}",
                label=label,
                image=shorten(image.name),
                name=type(error).__name__,
                error=shorten(str(error), 200),
            )
        ) from error
    wrong = _fault(returned)
    if wrong:
        raise ModelError(
            say(
                "The model's preprocess {label} returned {problem} for {image!r}; it must "
                "return a float tensor of (C, H, W) or (1, C, H, W).",
                label=label,
                problem=wrong,
                image=shorten(image.name),
            )
        )
    return _input(_batched(returned), None, None)


def _batched(tensor: Tensor, form: str = "C, H, W") -> Tensor:
    return tensor.unsqueeze(0) if tensor.dim() == _dimensions(form) else tensor


def _dimensions(form: str) -> int:
    return len(form.split(","))


def _fault(value: Any, form: str = "C, H, W") -> str:  # noqa: PLR0911 - one for each fault
    """What keeps `value` from being one image as a tensor; empty where nothing does."""
    if not isinstance(value, Tensor):
        return f"a {type(value).__name__}"
    if value.is_nested:
        return say("a nested tensor, which holds several of different shapes")
    shape = say("a tensor of {shape}", shape=tuple(value.shape))
    if value.layout != torch.strided:
        return say(
            "a sparse {kind} (tensor.to_dense() is not)",
            kind=shape.removeprefix("a "),
        )
    if value.is_meta:
        return say("{shape} on the meta device, without values", shape=shape)
    single, batched = _dimensions(form), _dimensions(form) + 1
    if value.dim() not in (single, batched) or not value.numel():
        return shape
    if value.dim() == batched and len(value) != 1:
        return shape
    if not value.is_floating_point():
        return say("{shape} with values of {dtype}", shape=shape, dtype=value.dtype)
    return ""


def _input(values: Tensor, picture: Pixels | None, crop: Crop | None) -> ModelInput:
    """`values`, ``(1, C, H, W)``, copied to the CPU and frozen together with what is known."""
    kind = torch.float64 if values.dtype == torch.float64 else torch.float32
    with torch.inference_mode(mode=False):  # an ordinary tensor, wherever it is made
        tensor = torch.empty(values.shape, dtype=kind).copy_(values.detach())
    digest = hashlib.blake2b(f"{kind} {tuple(tensor.shape)}".encode(), digest_size=16)
    digest.update(tensor.numpy().data)
    return ModelInput(tensor=tensor, picture=picture, crop=crop, digest=digest.hexdigest())


def _check(preprocess: Preprocess) -> None:
    """Refuse steps that no image can take, or that can't be carried out."""
    if preprocess.channels not in (1, 3):
        raise ImageError(
            say(
                "The model takes {channels} channels; images have 3 (RGB) or 1 (grey). Give "
                "it a tensor of (C, H, W) instead of an image, or wrap it with a preprocess "
                "function.",
                channels=preprocess.channels,
            )
        )
    if len(preprocess.std) != preprocess.channels or not all(preprocess.std):
        raise ModelError(
            say(
                "The preprocess has std {std}; it must be {channels} numbers other than 0, "
                "one for each number in mean.",
                std=preprocess.std,
                channels=preprocess.channels,
            )
        )
    if preprocess.interpolation not in _SUPPORT:
        raise ModelError(
            say(
                "The preprocess has interpolation {interpolation!r}; it can be {choices}.",
                interpolation=preprocess.interpolation,
                choices=" or ".join(map(repr, _SUPPORT)),
            )
        )
    if min(preprocess.resize, preprocess.crop) < 1:
        raise ModelError(
            say(
                "The preprocess has resize {resize} and crop {crop}; both must be 1 pixel or more.",
                resize=preprocess.resize,
                crop=preprocess.crop,
            )
        )


def _checked_size(size: int) -> int:
    """A size that can be made; whether the network takes it, its pass says best."""
    largest = settings().max_input
    if isinstance(size, bool) or not isinstance(size, int | np.integer):
        raise ImageError(
            say(
                "size={size} is not a whole number of pixels; it can be 1 to {largest}.",
                size=shorten(repr(size)),
                largest=largest,
            )
        )
    if not 1 <= size <= largest:
        raise ImageError(
            say(
                "An input size of {size} pixels is out of range; it can be 1 to {largest} "
                "(HOOKVIZ_MAX_INPUT).",
                size=size,
                largest=largest,
            )
        )
    return size


def _cropped(image: InputImage, preprocess: Preprocess, side: int) -> tuple[_Axis, _Axis]:
    """Rows and columns of torchvision's `resize` to the shorter side, then `center_crop`."""
    target = max(1, round(preprocess.resize * side / preprocess.crop))
    short = min(image.height, image.width)
    axes = []
    for source in (image.height, image.width):
        resized = int(target * source / short)  # as torchvision rounds it: down
        margin = resized - side
        start = -(-margin // 2) if margin < 0 else round(margin / 2.0)
        axes.append(_Axis(source, resized, start, side))
    return axes[0], axes[1]


def _whole(image: InputImage, side: int, min_size: int) -> tuple[_Axis, _Axis]:
    """Rows and columns of the whole image with its shorter side at `side`, as far as they go."""
    largest = max(settings().max_input, side)
    short, long = sorted((image.height, image.width))
    scale = min(side / short, largest / long)
    rows, columns = (
        _Axis(source, length, 0, length)
        for source in (image.height, image.width)
        for length in (max(min(min_size, side), 1, round(source * scale)),)
    )
    return rows, columns


def _resized(picture: Image.Image, rows: _Axis, columns: _Axis, interpolation: str) -> Image.Image:
    """`picture` resized and cropped as `rows` and `columns` say, black outside of the image."""
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


def _reach(axis: _Axis, interpolation: str) -> tuple[int, int]:
    """First and last pixel of the original, exclusive, that the visible crop depends on."""
    margin = _SUPPORT[interpolation] * max(1.0, axis.source / axis.resized) + 1
    low, high = (axis.to_source(position) for position in axis.visible)
    return max(0, math.floor(low - margin)), min(axis.source, math.ceil(high + margin))
