"""Compute one vector per image from a layer, to tell how alike images are to the network."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn, overload

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import nn

from hookviz.capturing import inputs
from hookviz.capturing.feature_vectors import POOLS, Features
from hookviz.capturing.image_shards import image_shards, needs_of
from hookviz.capturing.vector_work import VectorWork, last_conv
from hookviz.engines.choosing import engine_of
from hookviz.engines.engine import Engine
from hookviz.errors import (
    HookVizError,
    ImageError,
    SettingError,
    UnknownLayerError,
    one_of,
    shorten,
)
from hookviz.hooking.function_calls import is_function, nearest_module, no_module
from hookviz.hooking.modules import named_modules
from hookviz.images.urls import ImageUrl, is_url
from hookviz.language.saying import say
from hookviz.models.wrapping import as_model
from hookviz.paths import path_of
from hookviz.types import InputImage, Model, ModelInput, Preprocess, Progress, ignore

_SHARD = 16  # images that a worker of an engine takes at once


@overload
def features(  # type: ignore[overload-overlap]  # a name is an Iterable of names to a checker
    model: Model | nn.Module,
    images: Mapping[str, Any] | Iterable[Any],
    layer: str | None = None,
    pool: str = "mean",
    *,
    size: int | None = None,
    whole: bool = False,
    progress: Progress = ignore,
    engine: str | Engine = "local",
) -> Features: ...


@overload
def features(
    model: Model | nn.Module,
    images: Mapping[str, Any] | Iterable[Any],
    layer: Iterable[str],
    pool: str = "mean",
    *,
    size: int | None = None,
    whole: bool = False,
    progress: Progress = ignore,
    engine: str | Engine = "local",
) -> dict[str, Features]: ...


def features(
    model: Model | nn.Module,
    images: Mapping[str, Any] | Iterable[Any],
    layer: str | Iterable[str] | None = None,
    pool: str = "mean",
    *,
    size: int | None = None,
    whole: bool = False,
    progress: Progress = ignore,
    engine: str | Engine = "local",
) -> Features | dict[str, Features]:
    """Compute one vector per image from a layer's output, of its first call.

    The passes end at the layer. Of several layers there are features each, by the layer's name,
    from one pass an image, which ends at the last of them. An image that can't be read, or that
    the network can't take, is left out and told in `Features.failed`; the others go on.

    Args:
        model: from `load_model` or `wrap`, or a module of one's own.
        images: anything that `capture` takes, several of it; as a mapping where they have names.
        layer: whose output; the last conv layer by default. Several names give features of each.
        pool: one of `POOLS`.
        size: side of the inputs in pixels, in place of the model's own.
        whole: take in the whole images instead of their centre crops.
        progress: called with the share done; what it raises ends the run.
        engine: what goes through the images: ``"local"``, ``"ray"`` or ``"ray://HOST:PORT"``, as
            docs/scaling.md says.

    Raises:
        UnknownLayerError: the model has no such layer.
        SettingError: `pool` is not one of `POOLS`, no layer is given, or a function of the code
            that is listed as one, or there is no such engine.
        HookVizError: no image is given, or none gives a vector.

    >>> model = hookviz.load_model("shapesnet")
    >>> hookviz.extract_features(model, ["assets/samples/dots.jpg"]).vectors.shape  # (N, D)
    (1, 128)
    >>> found = hookviz.extract_features(model, ["assets/samples/dots.jpg"], ["stage1", "stage2"])
    >>> {name: features.vectors.shape for name, features in found.items()}
    {'stage1': (1, 48), 'stage2': (1, 96)}
    """
    one_of(say("pool"), pool, POOLS)
    model = as_model(model)
    listed = dict(images) if isinstance(images, Mapping) else named(images)
    if not listed:
        raise HookVizError(say("There is no image to make features of; give at least one."))
    asked = _asked(model, layer)
    known = asked or _last_of_first(model, listed, size, whole=whole)
    needs = needs_of([model], listed.values())
    work = VectorWork(model, known, pool, size, whole=whole, needs=needs)
    outcomes: dict[str, tuple[NDArray[np.float32], ...] | HookVizError] = {}

    def tell(done: float, _left_out: int) -> None:
        progress(min(1.0, done / len(listed)))

    for of_shard in engine_of(engine)(work, image_shards(listed, _SHARD), tell):
        outcomes |= of_shard
    if all(isinstance(outcome, HookVizError) for outcome in outcomes.values()):
        _refuse_all(outcomes)
    # A network may have refused the first image at first, and given features of it all the same.
    known = known or _last_of_first(model, listed, size, whole=whole)
    found = {}
    for place, name in enumerate(known):
        vectors: dict[str, NDArray[np.float32]] = {}
        failed: dict[str, str] = {}
        for image, outcome in outcomes.items():
            try:
                if isinstance(outcome, HookVizError):
                    raise outcome
                _check_length(outcome[place], vectors, pool)
                vectors[image] = outcome[place]
            except HookVizError as error:
                failed[image] = str(error)
        stacked = np.stack(list(vectors.values()))
        stacked.setflags(write=False)
        found[name] = Features(
            model=model.name,
            weights=model.weights,
            digest=model.digest,
            layer=name,
            pool=pool,
            names=tuple(vectors),
            vectors=stacked,
            failed=failed,
            size=size,
            whole=whole,
            preprocess=steps(model),
            files=tuple(_file(listed[image]) for image in vectors),
        )
    return found[known[0]] if layer is None or isinstance(layer, str) else found


def _asked(model: Model, layer: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the names of the layers that are asked for, each once; refuse what is no layer."""
    if layer is None:
        return ()
    several = isinstance(layer, Iterable) and not isinstance(layer, str)
    asked: tuple[Any, ...] = tuple(layer) if several else (layer,)
    if not asked:
        raise SettingError(
            say("layer={layer} names no layer; give at least one.", layer=shorten(repr(layer)))
        )
    names = list(filter(None, dict(named_modules(model.network, remove_duplicate=False))))
    for name in asked:
        if name in names:
            continue
        if is_function(str(name)) and nearest_module(name) in names:
            raise no_module(name, model.title, nearest_module(name))
        raise UnknownLayerError(say("layer in {model}", model=model.title), name, names)
    return tuple(dict.fromkeys(asked))


def _refuse_all(outcomes: Mapping[str, Any]) -> NoReturn:
    """Say that no image gave features, with the reason of the first one."""
    name, reason = next(iter(outcomes.items()))
    if len(outcomes) == 1:
        raise reason
    raise HookVizError(
        say("No image gave features. {name}: {reason}", name=shorten(name), reason=reason)
    ) from reason


def _last_of_first(
    model: Model, images: Mapping[str, Any], size: int | None, *, whole: bool
) -> tuple[str, ...]:
    """Return the last conv layer that the first readable image shows; none where none does."""
    for image in images.values():
        try:
            model_input = inputs.prepare(model, image, size=size, whole=whole)
            return (last_conv(model, tuple(model_input.tensor.shape[1:])),)
        except HookVizError:  # it is told in its turn
            continue
    return ()


def steps(model: Model) -> str:
    """Return how the model's inputs are made of images, as JSON; empty for a custom function."""
    if not isinstance(model.preprocess, Preprocess):
        return ""
    how = asdict(model.preprocess)
    if not model.preprocess.frames:  # so that it is as in files from before there was video
        del how["frames"]
    return json.dumps(how, sort_keys=True)


def named(images: Iterable[Any]) -> dict[str, Any]:
    """Name the images: by their files, or ``"image 3"``; a name's second use gets a number."""
    by_name: dict[str, Any] = {}
    if isinstance(
        images, str | bytes | os.PathLike | Image.Image | InputImage | ModelInput | ImageUrl
    ):
        images = [images]
    if not isinstance(images, Iterable):
        raise ImageError(
            say(
                "images={images} is no image and no sequence of them; give paths, bytes, "
                "Pillow images or tensors, such as ['cat.jpg', 'dog.jpg'].",
                images=shorten(repr(images)),
            )
        )
    uses: Counter[str] = Counter()
    for place, image in enumerate(images, start=1):
        plain = name = _name(image) or say("image {index}", index=place)
        while name in by_name:  # from the last number on: 100,000 can have one name
            uses[plain] += 1
            name = f"{plain} ({uses[plain] + 1})"
        by_name[name] = image
    return by_name


def _name(image: Any) -> str:
    if isinstance(image, InputImage | ImageUrl):
        return image.name
    if is_url(image):
        return ImageUrl(image).name
    if isinstance(image, Image.Image):
        return Path(str(getattr(image, "filename", ""))).name
    return Path(image).name if isinstance(image, str | os.PathLike) else ""


def _file(image: Any) -> str:
    if not isinstance(image, str | os.PathLike) or is_url(image):
        return ""
    return str(path_of(image).absolute())


def _check_length(
    vector: NDArray[np.float32], vectors: Mapping[str, NDArray[np.float32]], pool: str
) -> None:
    """Refuse a vector of another length than those before."""
    expected = next(iter(vectors.values()), vector)
    if len(vector) != len(expected):
        hint = say('pool="mean" takes inputs of any size.') if pool == "flat" else ""
        raise HookVizError(
            say(
                "It gives {vector_count:,} numbers and the first image {expected_count:,}, "
                "since their inputs differ in size. {hint}",
                vector_count=len(vector),
                expected_count=len(expected),
                hint=hint,
            ).rstrip()
        )
