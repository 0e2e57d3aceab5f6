"""What a layer makes of each image as one vector, to tell how alike images are to the network."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import nn

from hookviz.capturing import engine, inputs
from hookviz.capturing.feature_vectors import POOLS, Features
from hookviz.capturing.layers import channels_last
from hookviz.capturing.survey import survey
from hookviz.errors import HookVizError, ImageError, UnknownLayerError, one_of, shorten
from hookviz.hooking.forward_pass import Telling
from hookviz.paths import path_of
from hookviz.types import Activation, InputImage, Model, ModelInput, Preprocess, Progress, ignore


def features(
    model: Model,
    images: Mapping[str, Any] | Iterable[Any],
    layer: str | None = None,
    pool: str = "mean",
    *,
    size: int | None = None,
    whole: bool = False,
    progress: Progress = ignore,
) -> Features:
    """One vector per image from a layer's output, of its first call.

    The passes end at the layer. An image that can't be read, or that the network can't take, is
    left out and told in `Features.failed`; the others go on.

    Args:
        model: from `load_model` or `wrap`.
        images: anything that `capture` takes, several of it; as a mapping where they have names.
        layer: whose output; the last conv layer by default.
        pool: one of `POOLS`.
        size: side of the inputs in pixels, in place of the model's own.
        whole: take in the whole images instead of their centre crops.
        progress: told the share done; what it raises ends the run.

    Raises:
        UnknownLayerError: the model has no such layer.
        SettingError: `pool` is not one of `POOLS`.
        HookVizError: no image is given, or none gives a vector.

    >>> model = hookviz.load_model("shapesnet")
    >>> hookviz.extract_features(model, ["assets/samples/dots.jpg"]).vectors.shape  # (N, D)
    (1, 128)
    """
    one_of("pool", pool, POOLS)
    listed = dict(images) if isinstance(images, Mapping) else named(images)
    if not listed:
        raise HookVizError("There is no image to make features of; give at least one.")
    modules = dict(model.network.named_modules(remove_duplicate=False))
    if layer is not None and (not layer or layer not in modules):
        raise UnknownLayerError(f"layer in {model.title}", layer, filter(None, modules))
    telling = Telling(progress, len(listed))
    found: dict[str, NDArray[np.float32]] = {}
    failed: dict[str, HookVizError] = {}
    for name, image in listed.items():
        try:
            made = inputs.prepare(model, image, size=size, whole=whole)
            layer = layer or _last_conv(model, tuple(made.tensor.shape[1:]))
            capture = engine.capture(model, made, layer, logits=False, progress=telling.within)
            ratio = made.tensor.shape[-2] / made.tensor.shape[-1]
            made_of = vector(capture.calls(layer)[0], modules[layer], ratio, pool)
            _check_length(made_of, found, pool)
            found[name] = made_of
        except HookVizError as error:
            if telling.was_ended_by(error):
                raise
            failed[name] = error
        telling.step()
    if not found:
        name, reason = next(iter(failed.items()))
        if len(failed) == 1:
            raise reason
        raise HookVizError(f"No image gave features. {shorten(name)}: {reason}") from reason
    assert layer is not None
    vectors = np.stack(list(found.values()))
    vectors.setflags(write=False)
    return Features(
        model=model.name,
        weights=model.weights,
        digest=model.digest,
        layer=layer,
        pool=pool,
        names=tuple(found),
        vectors=vectors,
        failed={name: str(error) for name, error in failed.items()},
        size=size,
        whole=whole,
        preprocess=steps(model),
        files=tuple(_file(listed[name]) for name in found),
    )


def steps(model: Model) -> str:
    """How the model's inputs are made of images, as JSON; empty for a function of one's own."""
    made = model.preprocess
    return json.dumps(asdict(made), sort_keys=True) if isinstance(made, Preprocess) else ""


def named(images: Iterable[Any]) -> dict[str, Any]:
    """The images by their names: of files, or ``"image 3"``; a name's second use gets a number."""
    found: dict[str, Any] = {}
    if isinstance(images, str | bytes | os.PathLike | Image.Image | InputImage | ModelInput):
        images = [images]
    if not isinstance(images, Iterable):
        raise ImageError(
            f"images={shorten(repr(images))} is no image and no sequence of them; give paths, bytes"
            ", Pillow images or tensors, such as ['cat.jpg', 'dog.jpg']."
        )
    for place, image in enumerate(images, start=1):
        plain = _name(image) or f"image {place}"
        name, number = plain, 1
        while name in found:
            number += 1
            name = f"{plain} ({number})"
        found[name] = image
    return found


def _name(image: Any) -> str:
    if isinstance(image, InputImage):
        return image.name
    if isinstance(image, Image.Image):
        return Path(str(getattr(image, "filename", ""))).name
    return Path(image).name if isinstance(image, str | os.PathLike) else ""


def _file(image: Any) -> str:
    return str(path_of(image).absolute()) if isinstance(image, str | os.PathLike) else ""


def _last_conv(model: Model, shape: tuple[int, ...]) -> str:
    found = survey(model, shape)
    layers = found.convs or found.layers
    if not layers:
        raise HookVizError(f"{model.title} has no layer whose output could be a vector.")
    return layers[-1].name


def vector(
    activation: Activation, module: nn.Module, ratio: float, pool: str = "mean"
) -> NDArray[np.float32]:
    """The values as one vector, ``(D,)``: of ``(C, …)``, or ``(…, C)`` where channels are last.

    Args:
        activation: what the layer put out.
        module: the layer.
        ratio: height / width of the network's input, which tells rows from channels.
        pool: one of `POOLS`.

    Raises:
        HookVizError: there are no numbers in it.
    """
    values: NDArray[np.float32] = activation.values.numpy()
    if not values.size:
        raise HookVizError(f"{activation.address} put out no numbers.")
    if values.ndim > 1 and channels_last(values.shape, module, ratio):
        values = np.moveaxis(values, -1, 0)
    if pool == "mean" and values.ndim > 1:
        rows = values.reshape(len(values), -1).astype(np.float64)
        means: NDArray[np.float32] = rows.mean(axis=1).astype(np.float32)
        return means
    return values.reshape(-1).copy()


def _check_length(
    vector: NDArray[np.float32], found: Mapping[str, NDArray[np.float32]], pool: str
) -> None:
    """Refuse a vector of another length than those before."""
    expected = next(iter(found.values()), vector)
    if len(vector) != len(expected):
        hint = 'pool="mean" takes inputs of any size.' if pool == "flat" else ""
        raise HookVizError(
            f"It gives {len(vector):,} numbers and the first image {len(expected):,}, since their "
            f"inputs differ in size. {hint}".rstrip()
        )
