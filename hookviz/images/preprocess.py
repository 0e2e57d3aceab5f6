"""Turn an `InputImage` into a model's input tensor, and keep the geometry of what it shows.

`repainted` makes an input of a picture that was changed after it was cut to size. The part of an
image that another library's image processor shows is found in three steps:

1. Take the steps that the processor declares: sizes, crop, mean and deviation.
2. Make the picture that each reading of them gives.
3. Compare it with the processor's own tensor; the part is known where one of them agrees.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F  # its name everywhere

from hookviz.errors import HookVizError, ImageError, ModelError, shorten
from hookviz.images.arrays import ARRAYS, is_batch, several, tensor_of
from hookviz.images.reading import decode_frames
from hookviz.language.saying import say
from hookviz.settings import settings
from hookviz.types import Crop, InputImage, Model, ModelInput, Pixels, Preprocess

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
            candidate = np.asarray(resize_and_crop(source, *axes, filter_name), dtype=np.float32)
            if np.abs(candidate - levels).mean() <= _MOST_LEVELS:
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
    """Return an image processor as an `ImageProcessor`, and other preprocessing unchanged.

    Of a processor of images and text, such as CLIP's, the part for images is used.
    """
    processor = getattr(steps, "image_processor", steps)
    is_processor = callable(processor) and callable(getattr(processor, "preprocess", None))
    return ImageProcessor(processor) if is_processor else steps


def pixel_values(returned: Any) -> Any:
    """Return the ``pixel_values`` in a processor's output; any other output unchanged."""
    if not isinstance(returned, Mapping) or "pixel_values" not in returned:
        return returned
    values = returned["pixel_values"]
    if isinstance(values, list) and len(values) == 1:
        values = values[0]
    return torch.as_tensor(values) if isinstance(values, np.ndarray) else values


def prepare(
    image: InputImage,
    preprocess: Preprocess | Callable[[Image.Image], Tensor],
    *,
    size: int | None = None,
    whole: bool = False,
    min_size: int = 1,
) -> ModelInput:
    """Make the model's input of `image`, ``(1, C, H, W)``, and tell what part it shows.

    A model of video gets a clip, ``(1, C, T, H, W)``: of an animation `Preprocess.frames` of its
    frames, each made ready as an image is, of a still image that one again and again.

    With a `Preprocess` the tensor equals that of torchvision's ``weights.transforms()`` on the
    Pillow image, bit for bit. The exception are images so long and thin that resizing them as a
    whole would make more than 32 million pixels (1 × 4000 becomes 256 × 1,024,000): of these only
    the part that the crop shows is resized, with positions rounded to float32, so that a value
    may differ by one level of 255 (by more where bicubic overshoots beside a hard edge). Where the
    model crops more than it resizes to, the input is padded with black as torchvision does it, and
    the crop reaches past the image.

    Args:
        image: what to show the model.
        preprocess: the model's own steps, or a function from an RGB Pillow image to ``(C, H, W)``,
            ``(1, C, H, W)`` or a dict that has it as ``pixel_values``.
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
    if preprocess.frames:
        return _clip(image, preprocess, size, min_size, whole=whole)
    picture = Image.fromarray(image.pixels)
    if preprocess.channels == 1:
        picture = picture.convert("L")  # luma by ITU-R 601-2, Pillow's only grey
    side = preprocess.crop if size is None else _checked_size(size)
    if whole:
        rows, columns = whole_axes(image, side, min_size)
    else:
        rows, columns = crop_axes(image, preprocess, side)
    picture = resize_and_crop(picture, rows, columns, preprocess.interpolation)
    # From here on these are the steps of torchvision's presets.
    levels = F.convert_image_dtype(F.pil_to_tensor(picture), torch.float)
    values = F.normalize(levels, mean=list(preprocess.mean), std=list(preprocess.std))
    shown = np.array(picture.convert("RGB"))
    shown.setflags(write=False)
    model_input = _input(values.unsqueeze(0), shown, crop_between(rows, columns))
    return replace(model_input, note=image.note)


def from_tensor(tensor: Tensor, form: str = "C, H, W") -> ModelInput:
    """Take a float tensor of ``(C, H, W)`` or ``(1, C, H, W)`` as an input, values untouched.

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
        if isinstance(tensor, Tensor) and form == "C, H, W" and is_batch(tensor):
            raise ImageError(say("The input is {problem}.", problem=several(tuple(tensor.shape))))
        raise ImageError(
            say(
                "The input is {problem}; give one image as a float tensor of ({axes}) or (1, "
                "{axes}), normalised as the model expects it.",
                problem=wrong,
                axes=form,
            )
        )
    return _input(_batched(tensor, form), None, None)


def _clip(
    image: InputImage, preprocess: Preprocess, size: int | None, min_size: int, *, whole: bool
) -> ModelInput:
    """Make a clip, ``(1, C, T, H, W)``: each frame as an image is made ready."""
    steps = replace(preprocess, frames=0)
    frames = [
        prepare(frame, steps, size=size, whole=whole, min_size=min_size)
        for frame in decode_frames(image, preprocess.frames)
    ]
    middle = frames[len(frames) // 2]
    values = torch.stack([frame.tensor for frame in frames], dim=2)
    count = preprocess.frames // len(frames)  # a still image is one frame
    clip = _input(values.repeat_interleave(count, dim=2), middle.picture, middle.crop)
    pictures = tuple(frame.picture for frame in frames if frame.picture is not None)
    return clip if len(frames) == 1 else replace(clip, frames=pictures)


def from_reader(read: Callable[[Any], Any], source: Any) -> Tensor:
    """Return the float tensor to which a person's own function reads a path or bytes.

    Raises:
        ModelError: it failed, or returned no image.
    """
    shown = say("the file's bytes") if isinstance(source, bytes) else shorten(repr(str(source)))
    return _called(read, "read", source, shown)


def _from_function(image: InputImage, function: Callable[[Image.Image], Any]) -> ModelInput:
    picture = Image.fromarray(image.pixels)
    tensor = _batched(_called(function, "preprocess", picture, repr(shorten(image.name))))
    known = function.shown(image, tensor) if isinstance(function, ImageProcessor) else (None, None)
    return replace(_input(tensor, *known), note=image.note)


def _called(function: Callable[[Any], Any], role: str, argument: Any, shown: str) -> Tensor:
    """Return the tensor that a person's own function makes of an image."""
    label = shorten(repr(function))
    try:
        returned = pixel_values(function(argument))
    except HookVizError:
        raise
    except Exception as error:  # the function is the caller's own: anything can come out of it
        raise ModelError(
            say(
                "The model's {role} {label} failed on {image}: {name}: {error}",
                role=role,
                label=label,
                image=shown,
                name=type(error).__name__,
                error=shorten(str(error), 200),
            )
        ) from error
    if isinstance(returned, ARRAYS) and not isinstance(returned, Mapping):
        returned = tensor_of(returned)
    wrong = _fault(returned)
    if wrong:
        raise ModelError(
            say(
                "The model's {role} {label} returned {problem} for {image}; it must return a "
                "float tensor of (C, H, W) or (1, C, H, W), or a dict with it as pixel_values.",
                role=role,
                label=label,
                problem=wrong,
                image=shown,
            )
        )
    values: Tensor = returned
    return values


def _batched(tensor: Tensor, form: str = "C, H, W") -> Tensor:
    return tensor.unsqueeze(0) if tensor.dim() == _dimensions(form) else tensor


def _dimensions(form: str) -> int:
    return len(form.split(","))


def _fault(value: Any, form: str = "C, H, W") -> str:  # noqa: PLR0911 - one for each fault
    """Return why `value` is not one image as a tensor, or an empty string."""
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
    """Copy `values`, ``(1, C, H, W)``, to the CPU, and return them as a frozen input."""
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
    if preprocess.interpolation not in FILTER_REACH:
        raise ModelError(
            say(
                "The preprocess has interpolation {interpolation!r}; it can be {choices}.",
                interpolation=preprocess.interpolation,
                choices=" or ".join(map(repr, FILTER_REACH)),
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
    """Return a size that can be made; whether the network takes it, its pass says best."""
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


def check_repaints(model: Model, model_input: ModelInput) -> tuple[Preprocess, Pixels]:
    """Return the model's own steps and the picture of its input; refuse where one is missing.

    Raises:
        HookVizError: the model makes its input by a function of its own, or there is no picture.
    """
    steps, picture = model.preprocess, model_input.picture
    if not isinstance(steps, Preprocess):
        raise HookVizError(
            say(
                "{model} makes its input by a function of its own, so a changed picture can't be "
                "given to it. The models of the list can take one.",
                model=model.title,
            )
        )
    if picture is None:
        raise HookVizError(
            say(
                "The input of {model} was given as a tensor, so there is no picture of it to "
                "change.{hint}",
                model=model.title,
                hint=say(" Give the image that it was made of.")
                if len(model.input_shape) in {0, 3} and steps.channels in {1, 3}
                else "",
            )
        )
    return steps, picture


def repainted(model: Model, model_input: ModelInput, picture: Pixels) -> ModelInput:
    """Return the input with `picture`, RGB uint8 ``(H, W, 3)`` of any size, in place of its own.

    The same picture gives the same tensor to the bit: after resizing and cropping, the model's own
    steps only divide by 255 and normalise.

    Raises:
        HookVizError: as `check_repaints` does.
    """
    steps, _ = check_repaints(model, model_input)
    image = Image.fromarray(picture)
    if steps.channels == 1:
        image = image.convert("L")
    levels = F.convert_image_dtype(F.pil_to_tensor(image))
    repainted_input = from_tensor(F.normalize(levels, mean=list(steps.mean), std=list(steps.std)))
    shown = np.array(picture)
    shown.setflags(write=False)
    return replace(repainted_input, picture=shown, crop=model_input.crop)
