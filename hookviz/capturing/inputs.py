"""Turn an image, a tensor or a prepared input into the input that a model takes."""

from typing import Any

from torch import Tensor, nn

from hookviz.capturing.own_input import settle_input
from hookviz.errors import ImageError, shorten
from hookviz.hooking.default_device import with_numbers
from hookviz.hooking.forward_pass import runs_through, stated_shape
from hookviz.images import preprocess, reading
from hookviz.language.saying import say
from hookviz.models.wrapping import as_model
from hookviz.types import Model, ModelInput, Preprocess
from hookviz.wording import times

_FORMS = {2: "C, L", 4: "C, D, H, W"}  # of sound and of volumes, by their dimensions


@with_numbers
def prepare(
    model: Model | nn.Module, image: Any, *, size: int | None = None, whole: bool = False
) -> ModelInput:
    """Return the input that `capture` gives the network for `image`.

    Args:
        model: whose preprocessing is used.
        image: a path, the bytes of a file, a Pillow image, an `InputImage`, a ``(C, H, W)`` or
            ``(1, C, H, W)`` float tensor that is used as it is, or a `ModelInput`. A network that
            takes video, ``(C, T, H, W)``, gets the frames of an animation, from first to last as
            many as it takes, and a still image as that many frames.
        size: side of the input in pixels, in place of the model's own.
        whole: take in the whole image instead of its centre crop.

    Raises:
        ImageError: the image can't be read, or can't be brought to that size; or `size` or `whole`
            is given with a tensor or a `ModelInput`, which is used as it is.

    >>> model = hookviz.load_model("shapesnet")
    >>> model_input = hookviz.prepare(model, "assets/samples/cat.jpg")
    >>> model_input.tensor.shape  # (1, C, H, W)
    torch.Size([1, 3, 128, 128])
    >>> model_input.picture.shape  # (H, W, 3)
    (128, 128, 3)
    """
    model = as_model(model)
    if isinstance(image, ModelInput | Tensor) and (size is not None or whole):
        kind = "tensor" if isinstance(image, Tensor) else "ModelInput"
        asked = f"size={shorten(repr(size))}" if size is not None else "whole=True"
        raise ImageError(
            say(
                "{option} is for images: a {kind} is used as it is. Leave it out, or give the "
                "image.",
                option=asked,
                kind=kind,
            )
        )
    if isinstance(image, ModelInput):
        return image
    if not isinstance(image, Tensor) and size is None:
        settle_input(model)
    steps = model.preprocess
    takes_clips = isinstance(steps, Preprocess) and steps.frames > 0
    form = "C, T, H, W" if takes_clips else _FORMS.get(len(stated_shape(model)), "C, H, W")
    if isinstance(image, Tensor):
        return preprocess.from_tensor(image, form)
    if len(stated_shape(model)) != 3 and not takes_clips:
        raise ImageError(
            say(
                "{model} takes no image but a float tensor of ({axes}){example}.",
                model=model.title,
                axes=form,
                example=say(", such as {shape}", shape=times(stated_shape(model)))
                if runs_through(model, stated_shape(model))
                else "",
            )
        )
    return preprocess.prepare(
        reading.read(image), model.preprocess, size=size, whole=whole, min_size=model.min_size
    )
