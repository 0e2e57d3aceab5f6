"""Make a subject of what a person gives in Python: a model and anything that is taken as an image.

The page makes its subjects of what its widgets chose, and gives them the session's own cache.
"""

from contextlib import suppress
from dataclasses import replace
from functools import cache as once
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor

from hookviz.capturing.cache import Budget, ByteCache
from hookviz.capturing.inputs import prepare
from hookviz.drawing.dimensions import middle_maps
from hookviz.errors import HookVizError, UnknownModelError
from hookviz.explorer.subject import Subject
from hookviz.images.reading import read
from hookviz.language.saying import say
from hookviz.machine.memory import MEGABYTE
from hookviz.models.catalog import find_model
from hookviz.models.loading import load_model
from hookviz.settings import settings
from hookviz.types import Capture, Crop, InputImage, Model, ModelInput, Pixels
from hookviz.wording import times


def subject_given(
    model: Model,
    image: Any,
    *,
    size: int | None = None,
    whole: bool = False,
    cache: ByteCache | None = None,
) -> Subject:
    """Return what questions about a model and an image are about.

    Args:
        model: the network.
        image: anything that `prepare` takes. What the network is given itself, a tensor or a
            `ModelInput`, is its own image.
        size: side of the input in pixels, in place of the model's own.
        whole: take in the whole image instead of its centre crop.
        cache: keeps what is computed; one of its own by default.

    Raises:
        ImageError: as `prepare`.
    """
    if isinstance(image, Tensor | ModelInput):
        model_input = prepare(model, image, size=size, whole=whole)
        title = say("input of {shape}", shape=times(model_input.tensor.shape[1:]))
        model_input, shown = _as_its_own_image(model_input, title)
    else:
        shown = read(image)
        model_input = prepare(model, shown, size=size, whole=whole)
    return Subject(
        model=model,
        model_input=model_input,
        image=shown,
        cache=own_cache() if cache is None else cache,
        alt=shown.name,
        image_title=shown.name,
    )


def model_of(capture: Capture) -> Model:
    """Return the model that made a capture: who keeps it, or the catalog's with the same weights.

    Raises:
        HookVizError: nobody keeps it, and it is none of the catalog that is on this machine; or it
            is no capture of one image.
    """
    if not isinstance(capture, Capture):
        raise HookVizError(
            say(
                "A {kind} is no capture of one image; capture(model, image) gives one, and so does "
                "batch[0] of several.",
                kind=type(capture).__name__,
            )
        )
    model = None if capture.made_by is None else capture.made_by()
    if model is not None:
        return model
    with suppress(UnknownModelError):
        if find_model(capture.model).on_disk and capture.weights in ("pretrained", "random"):
            model = load_model(capture.model, capture.weights)
            if model.cache_key == capture.digest:
                return model
    raise HookVizError(
        say(
            "The network of this capture of {model} is gone: a capture holds none. Keep the model "
            "in a variable beside it, as in model = hookviz.wrap(network).",
            model=capture.model,
        )
    )


def own_cache() -> ByteCache:
    """Return an empty cache of what a session of the app keeps: all of these together hold that."""
    budget = _budget()
    return budget.cache(budget.limit)


@once
def _budget() -> Budget:
    return Budget(settings().session_mb * MEGABYTE)


def _as_its_own_image(model_input: ModelInput, title: str) -> tuple[ModelInput, InputImage]:
    """Return an input as if it were made of its own picture, whole, and that picture."""
    picture = model_input.picture
    if picture is None:
        picture = _stretched(model_input.tensor[0])
    shown = replace(read(Image.fromarray(picture)), name=title)
    crop = None
    if model_input.tensor.dim() == 4:  # neither sound nor a volume
        height, width = model_input.tensor.shape[2:]
        crop = Crop(0, 0, shown.width, shown.height, height, width)
    return replace(model_input, picture=picture, crop=crop), shown


def _stretched(values: Tensor) -> Pixels:
    """Return a tensor as a picture, RGB uint8 ``(H, W, 3)``: its least value black, its most white.

    Three channels are colours; of any other number it is their mean.
    """
    maps = middle_maps(values.float()).numpy()
    shown = maps if len(maps) == 3 else maps.mean(axis=0, keepdims=True).repeat(3, axis=0)
    shown = np.nan_to_num(shown, posinf=0.0, neginf=0.0)
    low, high = float(shown.min()), float(shown.max())
    levels = (shown - low) * (255 / (high - low) if high > low else 0)
    picture: Pixels = np.ascontiguousarray(levels.round().astype(np.uint8).transpose(1, 2, 0))
    picture.setflags(write=False)
    return picture
