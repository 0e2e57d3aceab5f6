"""Compute one vector per image from a layer, to tell how alike images are to the network.

`VectorWork` computes the vectors of one shard of images, wherever an engine has it done.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any, NoReturn, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hookviz.capturing import engine as capturing
from hookviz.capturing import inputs
from hookviz.capturing.batch_images import Images, name_images
from hookviz.capturing.feature_vectors import POOLS, Features, vector
from hookviz.capturing.image_shards import (
    ImageShard,
    ReadyImage,
    image_shards,
    needs_of,
    outcome_of_each,
    read_batches,
)
from hookviz.capturing.last_maps import last_maps
from hookviz.capturing.layer_trace import layer_trace
from hookviz.engines.engine import Engine, Needs, ReportImages, engine_of
from hookviz.errors import HookVizError, SettingError, one_of, shorten
from hookviz.hooking.device import device_and_dtype
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.hooking.selection import Layers, select, several
from hookviz.images.files import is_url
from hookviz.language.saying import say
from hookviz.models.wrapping import as_model
from hookviz.paths import path_of
from hookviz.types import Capture, Model, Preprocess, Progress, ignore

_Vectors = dict[int, tuple[NDArray[np.float32], ...]]
"""Vectors of images, one a layer, by the image's place in its shard."""

_SHARD = 32  # images that a worker of an engine takes at once, and a GPU in one pass
_NEAR = 1e-3  # of the largest number: a vector from a batch that is further away is of the batch


@overload
def features(  # type: ignore[overload-overlap]  # a name is an Iterable of names to a checker
    model: Model | nn.Module,
    images: Images,
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
    images: Images,
    layer: Layers,
    pool: str = "mean",
    *,
    size: int | None = None,
    whole: bool = False,
    progress: Progress = ignore,
    engine: str | Engine = "local",
) -> dict[str, Features]: ...


def features(
    model: Model | nn.Module,
    images: Images,
    layer: Layers = None,
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
        layer: whose output; the last maps by default, and `Features.layer` says whose. A list of
            names, or of what else `capture` chooses layers by, gives features of each.
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
    listed = dict(name_images(model, images))
    if not listed:
        raise HookVizError(say("There is no image to make features of; give at least one."))
    asked = _asked(model, layer)
    known = _layers_for(model, asked, listed, size, whole=whole)
    needs = needs_of([model], listed.values())
    work = VectorWork(model, known, pool, size, whole=whole, needs=needs)
    outcomes: dict[str, tuple[NDArray[np.float32], ...] | HookVizError] = {}

    def tell(done: float, _left_out: int) -> None:
        progress(min(1.0, done / len(listed)))

    for of_shard in engine_of(engine)(work, image_shards(listed.items(), _SHARD), tell):
        outcomes |= of_shard
    if all(isinstance(outcome, HookVizError) for outcome in outcomes.values()):
        _refuse_all(outcomes)
    # A network may have refused the first image at first, and given features of it all the same.
    known = known or _layers_for(model, asked, listed, size, whole=whole)
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


def _asked(model: Model, layer: Layers) -> dict[str, bool]:
    """Return the layers that are asked for, and whether by name; refuse what is no layer."""
    if layer is None:
        return {}
    asked = several(layer)
    if not asked:
        raise SettingError(
            say("layer={layer} names no layer; give at least one.", layer=shorten(repr(layer)))
        )
    chosen: dict[str, bool] = {}
    for selector in asked:
        chosen |= {name: chosen.get(name, name == selector) for name in select(model, selector)}
    if isinstance(layer, str) and len(chosen) > 1:
        raise SettingError(
            say(
                "layer={layer!r} chooses {count:,} layers, such as {name!r}; in a list it gives "
                "features of each.",
                layer=layer,
                count=len(chosen),
                name=next(iter(chosen)),
            )
        )
    return chosen


def _refuse_all(outcomes: Mapping[str, Any]) -> NoReturn:
    """Say that no image gave features, with the reason of the first one."""
    name, reason = next(iter(outcomes.items()))
    if len(outcomes) == 1:
        raise reason
    raise HookVizError(
        say("No image gave features. {name}: {reason}", name=shorten(name), reason=reason)
    ) from reason


def _layers_for(
    model: Model,
    asked: dict[str, bool],
    images: Mapping[str, Any],
    size: int | None,
    *,
    whole: bool,
) -> tuple[str, ...]:
    """Return the layers asked for by name, and of the others those that the first image runs.

    Where none is asked for, it is the last with maps that the first readable image shows.
    """
    if asked and all(asked.values()):
        return tuple(asked)
    for image in images.values():
        try:
            model_input = inputs.prepare_input(model, image, size=size, whole=whole)
            shape = tuple(model_input.tensor.shape[1:])
            if not asked:
                return (_usual_layer(model, shape),)
            run = layer_trace(model, shape).calls
        except HookVizError:  # it is told in its turn
            continue
        # Of none that runs each image tells why it has none.
        return tuple(name for name in asked if asked[name] or name in run) or tuple(asked)
    return tuple(asked)


def steps(model: Model) -> str:
    """Return how the model's inputs are made of images, as JSON; empty for a custom function."""
    if not isinstance(model.preprocess, Preprocess):
        return ""
    how = asdict(model.preprocess)
    if not model.preprocess.frames:  # so that it is as in files from before there was video
        del how["frames"]
    return json.dumps(how, sort_keys=True)


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


@dataclass(frozen=True)
class VectorWork:
    """Worker that makes a vector of each image and layer, or says why an image has none.

    On a GPU images go through in batches, read ahead in threads. A network that mixes the images
    of a batch, or takes no batch, gets them one by one, as every network on a CPU does.

    Attributes:
        model: from `load_model` or `wrap`.
        layers: names of the layers; empty to use each image's last layer with maps.
        pool: one of `POOLS`.
        size: side of the inputs in pixels, in place of the model's own.
        whole: take in the whole images instead of their centre crops.
        in_batches: whether a shard's images share a pass; by default unless on a CPU.
        needs: what it needs where it runs.
    """

    model: Model
    layers: tuple[str, ...]
    pool: str
    size: int | None
    whole: bool = False
    in_batches: bool | None = None
    needs: Needs = field(default_factory=Needs)

    def names(self, shard: ImageShard) -> tuple[str, ...]:
        """Return the names of a shard's images."""
        return shard.names

    def __call__(
        self, shard: ImageShard, report: ReportImages
    ) -> dict[str, tuple[NDArray[np.float32], ...] | HookVizError]:
        """Return each image's vectors, one a layer, or why there are none, by its name."""
        in_batches = self.in_batches
        if in_batches is None:
            in_batches = device_and_dtype(self.model.network)[0].type != "cpu"
        ready = self._in_batches(shard) if in_batches and self.layers else {}
        return outcome_of_each(
            shard,
            report,
            lambda place, image, reporter: ready.get(place) or self._vectors(image, reporter),
        )

    def _in_batches(self, shard: ImageShard) -> _Vectors:
        """Return vectors by the image's place in the shard; without those that need a pass alone.

        One image of the first batch is run alone as well: where it has other vectors there, the
        network mixes images, and no batch's vectors are returned.
        """
        everything = range(len(shard.images))
        (read,) = read_batches(
            self.model, shard.images, everything, len(everything), self.size, whole=self.whole
        )
        ready = [image for image in read if isinstance(image, ReadyImage)]
        vectors: _Vectors = {}
        for _, group in groupby(ready, key=lambda image: image.tensor.shape):
            of_group = self._of_group(list(group))
            if of_group and not vectors and not self._keeps_apart(ready, of_group):
                return {}
            vectors |= of_group
        return vectors

    def _of_group(self, group: list[ReadyImage]) -> _Vectors:
        """Run images of one shape in one pass."""
        if len(group) == 1:
            return {}
        try:
            images = torch.cat([image.tensor for image in group])
            captured = capturing.capture(self.model, images, self.layers, logits=False)
            return {
                image.index: self._pooled(capture, self.layers)
                for image, capture in zip(group, captured, strict=True)
            }
        except HookVizError:  # each by itself then says what is wrong with which
            return {}

    def _keeps_apart(self, ready: list[ReadyImage], vectors: _Vectors) -> bool:
        """Return whether an image of a batch has the vectors that it has alone."""
        image = next(each for each in ready if each.index in vectors)
        capture = capturing.capture(self.model, image.tensor, self.layers, logits=False)
        return all(
            np.allclose(one, other, rtol=0, atol=_NEAR * np.abs(one).max(), equal_nan=True)
            for one, other in zip(
                self._pooled(capture, self.layers), vectors[image.index], strict=True
            )
        )

    def _vectors(self, image: Any, reporter: ProgressReporter) -> tuple[NDArray[np.float32], ...]:
        model_input = inputs.prepare_input(self.model, image, size=self.size, whole=self.whole)
        shape = model_input.tensor.shape
        layers = self.layers or (_usual_layer(self.model, tuple(shape[1:])),)
        captured = capturing.capture(
            self.model, model_input, layers, logits=False, progress=reporter.within
        )
        return self._pooled(captured, layers)

    def _pooled(self, capture: Capture, layers: Iterable[str]) -> tuple[NDArray[np.float32], ...]:
        return tuple(vector(capture.calls(layer)[0], self.pool) for layer in layers)


def _usual_layer(model: Model, shape: tuple[int, ...]) -> str:
    """Return the layer whose output stands for an input ``(C, H, W)`` where none is chosen.

    That is the last module that puts out maps, such as ``layer4.1`` of a ResNet, whose mean is what
    the classes are read off; without such, the last conv layer or the last layer.
    """
    trace = layer_trace(model, shape)
    layers = trace.convs or trace.layers
    last = last_maps(trace, {layer.name for layer in trace.every})
    if last is not None:
        return last
    if not layers:
        raise HookVizError(
            say("{model} has no layer whose output could be a vector.", model=model.title)
        )
    return layers[-1].name
