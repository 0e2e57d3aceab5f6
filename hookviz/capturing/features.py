"""Compute one vector per image from a layer, to tell how alike images are to the network."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hookviz.capturing import engine as capturing
from hookviz.capturing import inputs
from hookviz.capturing.feature_vectors import POOLS, Features
from hookviz.capturing.image_shards import ImageShard, image_shards, needs_of
from hookviz.capturing.layer_trace import layer_trace
from hookviz.engines.choosing import engine_of
from hookviz.engines.engine import Engine, Needs, ReportImages
from hookviz.errors import HookVizError, ImageError, UnknownLayerError, one_of, shorten
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.images.urls import ImageUrl, is_url
from hookviz.language.saying import say
from hookviz.paths import path_of
from hookviz.types import Activation, InputImage, Model, ModelInput, Preprocess, Progress, ignore

_SHARD = 16  # images that a worker of an engine takes at once


def features(
    model: Model,
    images: Mapping[str, Any] | Iterable[Any],
    layer: str | None = None,
    pool: str = "mean",
    *,
    size: int | None = None,
    whole: bool = False,
    progress: Progress = ignore,
    engine: str | Engine = "local",
) -> Features:
    """Compute one vector per image from a layer's output, of its first call.

    The passes end at the layer. An image that can't be read, or that the network can't take, is
    left out and told in `Features.failed`; the others go on.

    Args:
        model: from `load_model` or `wrap`.
        images: anything that `capture` takes, several of it; as a mapping where they have names.
        layer: whose output; the last conv layer by default.
        pool: one of `POOLS`.
        size: side of the inputs in pixels, in place of the model's own.
        whole: take in the whole images instead of their centre crops.
        progress: called with the share done; what it raises ends the run.
        engine: what goes through the images: ``"local"``, ``"ray"`` or ``"ray://HOST:PORT"``, as
            docs/scaling.md says.

    Raises:
        UnknownLayerError: the model has no such layer.
        SettingError: `pool` is not one of `POOLS`, or there is no such engine.
        HookVizError: no image is given, or none gives a vector.

    >>> model = hookviz.load_model("shapesnet")
    >>> hookviz.extract_features(model, ["assets/samples/dots.jpg"]).vectors.shape  # (N, D)
    (1, 128)
    """
    one_of(say("pool"), pool, POOLS)
    listed = dict(images) if isinstance(images, Mapping) else named(images)
    if not listed:
        raise HookVizError(say("There is no image to make features of; give at least one."))
    modules = dict(model.network.named_modules(remove_duplicate=False))
    if layer is not None and (not layer or layer not in modules):
        raise UnknownLayerError(
            say("layer in {model}", model=model.title), layer, filter(None, modules)
        )
    first = _layer_of_first(model, listed, layer, size, whole=whole)
    needs = needs_of([model], listed.values())
    work = VectorWork(model, first, pool, size, whole=whole, needs=needs)
    vectors: dict[str, NDArray[np.float32]] = {}
    failed: dict[str, HookVizError] = {}

    def tell(done: float, _left_out: int) -> None:
        progress(min(1.0, done / len(listed)))

    for outcomes in engine_of(engine)(work, image_shards(listed, _SHARD), tell):
        for name, outcome in outcomes.items():
            try:
                if isinstance(outcome, HookVizError):
                    raise outcome
                _check_length(outcome, vectors, pool)
                vectors[name] = outcome
            except HookVizError as error:
                failed[name] = error
    if not vectors:
        name, reason = next(iter(failed.items()))
        if len(failed) == 1:
            raise reason
        raise HookVizError(
            say("No image gave features. {name}: {reason}", name=shorten(name), reason=reason)
        ) from reason
    # A network may have refused the first image at first, and given features of it all the same.
    last = work.layer or _layer_of_first(model, listed, layer, size, whole=whole)
    assert last is not None
    stacked = np.stack(list(vectors.values()))
    stacked.setflags(write=False)
    return Features(
        model=model.name,
        weights=model.weights,
        digest=model.digest,
        layer=last,
        pool=pool,
        names=tuple(vectors),
        vectors=stacked,
        failed={name: str(error) for name, error in failed.items()},
        size=size,
        whole=whole,
        preprocess=steps(model),
        files=tuple(_file(listed[name]) for name in vectors),
    )


@dataclass(frozen=True)
class VectorWork:
    """Worker that makes a vector of each image of a shard, or says why there is none.

    Attributes:
        model: from `load_model` or `wrap`.
        layer: whose output; None where no image has told which layer is the last.
        pool: one of `POOLS`.
        size: side of the inputs in pixels, in place of the model's own.
        whole: take in the whole images instead of their centre crops.
        needs: what it needs where it runs.
    """

    model: Model
    layer: str | None
    pool: str
    size: int | None
    whole: bool = False
    needs: Needs = field(default_factory=Needs)

    def names(self, shard: ImageShard) -> tuple[str, ...]:
        """Return the names of a shard's images."""
        return shard.names

    def __call__(
        self, shard: ImageShard, report: ReportImages
    ) -> dict[str, NDArray[np.float32] | HookVizError]:
        """Return the vector of each image, or why there is none, by its name."""
        count, left_out = len(shard.names), 0
        reporter = ProgressReporter(lambda share: report(count * share, left_out), count)
        outcomes: dict[str, NDArray[np.float32] | HookVizError] = {}
        for name, image in zip(shard.names, shard.images, strict=True):
            try:
                outcomes[name] = self._vector(image, reporter)
            except HookVizError as error:
                if reporter.was_ended_by(error):
                    raise
                outcomes[name] = error
                left_out += 1
            reporter.step()
        return outcomes

    def _vector(self, image: Any, reporter: ProgressReporter) -> NDArray[np.float32]:
        model_input = inputs.prepare(self.model, image, size=self.size, whole=self.whole)
        shape = model_input.tensor.shape
        layer = self.layer or _last_conv(self.model, tuple(shape[1:]))
        captured = capturing.capture(
            self.model, model_input, layer, logits=False, progress=reporter.within
        )
        return vector(captured.calls(layer)[0], self.pool)


def _layer_of_first(
    model: Model, images: Mapping[str, Any], layer: str | None, size: int | None, *, whole: bool
) -> str | None:
    """Return the layer, or the last conv layer that the first readable image shows."""
    for image in images.values() if layer is None else ():
        try:
            model_input = inputs.prepare(model, image, size=size, whole=whole)
            return _last_conv(model, tuple(model_input.tensor.shape[1:]))
        except HookVizError:  # it is told in its turn
            continue
    return layer


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


def _last_conv(model: Model, shape: tuple[int, ...]) -> str:
    trace = layer_trace(model, shape)
    layers = trace.convs or trace.layers
    if not layers:
        raise HookVizError(
            say("{model} has no layer whose output could be a vector.", model=model.title)
        )
    return layers[-1].name


def vector(activation: Activation, pool: str = "mean") -> NDArray[np.float32]:
    """Return the values as one vector, ``(D,)``: of maps, ``(C, …)``, or of vectors, ``(…, C)``.

    Args:
        activation: what the layer put out.
        pool: one of `POOLS`.

    Raises:
        HookVizError: there are no numbers in it.
    """
    values: NDArray[np.float32] = activation.values.numpy()
    if not values.size:
        raise HookVizError(say("{address} put out no numbers.", address=activation.address))
    if values.ndim > 1 and activation.channels_last:
        values = np.moveaxis(values, -1, 0)
    if pool == "mean" and values.ndim > 1:
        return channel_means(values)
    return values.reshape(-1).copy()


def channel_means(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean of each channel over all positions, ``(C,)``, of ``(C, …)``."""
    rows = values.reshape(len(values), -1).astype(np.float64)
    means: NDArray[np.float32] = rows.mean(axis=1).astype(np.float32)
    return means


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
