"""Turn an image, a tensor or a prepared input into the input that a model takes.

The input of a network that states none is guessed. `settle_input` tries the guess in one pass.
"""

import os
from collections.abc import MutableMapping
from typing import Any

import numpy as np
from torch import Tensor, nn

from hookviz.capturing.layer_trace import layer_trace
from hookviz.errors import ImageError, ModelError, shorten
from hookviz.hooking.device import with_numbers
from hookviz.hooking.forward_pass import runs_through, stated_shape
from hookviz.hooking.network_state import ByNetwork
from hookviz.hooking.own_network import locked
from hookviz.images import preprocess, reading
from hookviz.images.arrays import ARRAYS, picture_or_tensor, tensor_of
from hookviz.language.saying import say
from hookviz.models.guessing import Guess, normalises_itself, search_input
from hookviz.models.wrapping import as_model
from hookviz.types import InputImage, Model, ModelInput, Preprocess
from hookviz.wording import times

_FORMS = {2: "C, L", 4: "C, D, H, W"}  # of sound and of volumes, by their dimensions

_found: MutableMapping[nn.Module, Guess | None] = ByNetwork()


@with_numbers
def prepare_input(
    model: Model | nn.Module, image: Any, *, size: int | None = None, whole: bool = False
) -> ModelInput:
    """Return the input that `capture` gives the network for `image`.

    Args:
        model: whose preprocessing is used.
        image: a path, the bytes of a file, a Pillow image, an `InputImage`, a picture as an array
            or a uint8 tensor (see `read_image`), a ``(C, H, W)`` or ``(1, C, H, W)`` float tensor
            or array that is used as it is, the dictionary with ``pixel_values`` of a Hugging Face
            processor, or a `ModelInput`. A network that takes video, ``(C, T, H, W)``, gets the
            frames of an animation, from first to last as many as it takes, and a still image as
            that many frames.
        size: side of the input in pixels, in place of the model's own.
        whole: take in the whole image instead of its centre crop.

    Raises:
        ImageError: the image can't be read, or can't be brought to that size; it is a batch of
            several; or `size` or `whole` is given with a float tensor or a `ModelInput`, which is
            used as it is.
        ModelError: the model's own `preprocess` or `read` failed on it.

    >>> model = hookviz.load_model("shapesnet")
    >>> model_input = hookviz.prepare_input(model, "assets/samples/cat.jpg")
    >>> model_input.tensor.shape  # (1, C, H, W)
    torch.Size([1, 3, 128, 128])
    >>> model_input.picture.shape  # (H, W, 3)
    (128, 128, 3)
    """
    model = as_model(model)
    image = open_source(model, image)
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
    takes_images, form = _form(model)
    if isinstance(image, Tensor):
        return preprocess.from_tensor(image, form)
    if not takes_images:
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
        image, model.preprocess, size=size, whole=whole, min_size=model.min_size
    )


def open_source(model: Model, image: Any) -> InputImage | Tensor | ModelInput:
    """Return what a person gave as the picture, the tensor or the input that it is for a model.

    Raises:
        ImageError: it can't be read.
        ModelError: the model's own `read` failed on it, or returned no image.
    """
    if isinstance(image, ModelInput):
        return image
    if model.read is not None and isinstance(image, str | os.PathLike | bytes):
        image = preprocess.from_reader(model.read, image)
    if isinstance(image, np.ndarray) and not _form(model)[0]:
        image = tensor_of(image)  # sound and volumes
    if isinstance(image, list | tuple):
        raise ImageError(
            say(
                "A {name} of {count:,} is no image; hookviz.capture(model, images) takes "
                "several, and images[0] is one.",
                name=type(image).__name__,
                count=len(image),
            )
        )
    if isinstance(image, ARRAYS):
        image = picture_or_tensor(image)
    return image if isinstance(image, Tensor) else reading.read(image)


def _form(model: Model) -> tuple[bool, str]:
    """Return whether a model takes images, and the dimensions of its input."""
    steps, shape = model.preprocess, stated_shape(model)
    if isinstance(steps, Preprocess) and steps.frames > 0:
        return True, "C, T, H, W"
    return len(shape) == 3, _FORMS.get(len(shape), "C, H, W")


def own_shape(model: Model) -> tuple[int, ...]:
    """Return the shape of the model's own input, ``(C, H, W)``.

    ``(C, L)`` of sound, ``(C, D, H, W)`` of volumes and ``(C, T, H, W)`` of video.
    """
    settle_input(model)
    return stated_shape(model)


def settle_input(model: Model) -> None:
    """Try the input that was guessed for a network, once, and correct the model where it fails.

    The pass that tries it is the one that traces its layers.
    """
    if not model.is_guessed:
        return
    with locked(model.network):
        if model.network not in _found:
            _found[model.network] = _correction(model)
        guess = _found[model.network]
        if guess is not None:
            # The one thing about a model that a pass may change.
            if not callable(model.preprocess):
                object.__setattr__(model, "preprocess", guess.preprocess)
            object.__setattr__(model, "input_shape", guess.input_shape(model.preprocess))
        object.__setattr__(model, "is_guessed", False)


def _correction(model: Model) -> Guess | None:
    """Return another input than the stated one, where that fails and another runs."""
    try:
        trace = layer_trace(model, stated_shape(model))
        if trace.keeps_batch or normalises_itself(model.network):  # of boxes there are several
            return None
    except ModelError:
        pass
    return search_input(model)
