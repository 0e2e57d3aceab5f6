"""Several images in one pass, and a `Capture` for each of them."""

import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from hookviz.capturing.inputs import prepare
from hookviz.capturing.recorded_pass import in_order, run, wanted_layers
from hookviz.capturing.survey import survey_input
from hookviz.errors import ImageError, ModelError
from hookviz.hooking.default_device import with_numbers
from hookviz.language.saying import say
from hookviz.types import Activation, Capture, Model, ModelInput, Progress
from hookviz.wording import times


@with_numbers
def capture_batch(
    model: Model,
    images: Tensor | Sequence[Any],
    layers: str | Iterable[str] | None = None,
    *,
    size: int | None = None,
    inputs: bool = False,
    progress: Progress | None = None,
) -> tuple[Capture, ...]:
    """What the named layers put out for each of several images that go through together.

    One pass, in which the network sees them as one batch, and one `Capture` an image, as `capture`
    gives it; numbers can differ from those of single passes by rounding.

    Args:
        model: from `load_model` or `wrap`.
        images: several of what `prepare` takes, or a float tensor of ``(N, C, H, W)``.
        layers: a layer's name, several, or None for every conv layer.
        size: side of the inputs in pixels, in place of the model's own.
        inputs: keep what the layers are given as well, for `Capture.inputs`.
        progress: told the share done after every layer; what it raises ends the run.

    Raises:
        UnknownLayerError: the model has no layer of that name.
        ImageError: there is no image, one can't be read, or they make inputs of several sizes.
        ModelError: the network can't take them, or a layer doesn't put out a part for each image.

    >>> model = hookviz.load_model("shapesnet")
    >>> caps = hookviz.capture_batch(model, torch.rand(4, 3, 64, 64))  # (N, C, H, W)
    >>> len(caps), caps[3]["stem.first.conv"].values.shape  # (C, H, W)
    (4, torch.Size([32, 32, 32]))
    """
    started = time.perf_counter()
    made = [prepare(model, image, size=size) for image in images]
    shapes = {tuple(each.tensor.shape) for each in made}
    if len(shapes) != 1:
        raise ImageError(
            say(
                "The images make inputs of {map}; in one pass all have to be of one size.",
                map=" and ".join(map(times, sorted(shapes))),
            )
            if made
            else say("There is no image in the batch; give one or more.")
        )
    batch = ModelInput(
        torch.cat([each.tensor for each in made]),
        None,
        None,
        hashlib.sha256("".join(each.digest for each in made).encode()).hexdigest(),
    )
    seen = survey_input(model, batch)
    wanted = wanted_layers(model, seen, layers)
    found = run(model, batch, seen, wanted, stop_early=False, progress=progress, inputs=inputs)
    activations = in_order(seen, (part for name in wanted for part in found.by_layer[name]))
    taken = in_order(seen, found.inputs)
    scores = None if found.logits is None else found.logits.reshape(len(made), -1)
    seconds = time.perf_counter() - started
    return tuple(
        Capture(
            model=model.name,
            digest=model.digest,
            weights=model.weights,
            model_input=each,
            activations=_of_one(activations, number, len(made)),
            logits=None if scores is None else scores[number].clone(),
            categories=model.categories,
            seconds=seconds,
            forward_passes=1,
            layer_inputs=_of_one(taken, number, len(made)),
        )
        for number, each in enumerate(made)
    )


def _of_one(parts: Iterable[Activation], number: int, images: int) -> tuple[Activation, ...]:
    return tuple(replace(part, values=_row(part, number, images)) for part in parts)


def _row(part: Activation, number: int, images: int) -> Tensor:
    if images == 1:
        return part.values
    if part.values.ndim == 0 or len(part.values) != images:
        raise ModelError(
            say(
                "{address} has {value} for {images} images together, and so no part for "
                "each. Capture them one by one.",
                address=part.address,
                value=times(part.values.shape) or say("one number"),
                images=images,
            )
        )
    return part.values[number].clone()
