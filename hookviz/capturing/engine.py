"""Capture what layers put out: a model, an image and layers in; a `Capture` out."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz.capturing.batch import AT_ONCE, CaptureBatch, capture_images
from hookviz.capturing.batch_images import images_of, is_batch
from hookviz.capturing.cache import ByteCache
from hookviz.capturing.inputs import prepare_input
from hookviz.capturing.layer_trace import LayerTrace, input_trace
from hookviz.capturing.recorded_pass import (
    Recording,
    answer_for,
    check_labels,
    first_look,
    maker_of,
    recording_of,
    run,
)
from hookviz.capturing.storage import HOST, Storage
from hookviz.capturing.wanted_layers import wanted_layers
from hookviz.hooking.device import with_numbers
from hookviz.hooking.network_state import unchanged
from hookviz.hooking.selection import Layers, several
from hookviz.language.saying import sentences
from hookviz.models.derived_models import with_edits
from hookviz.types import Activation, Capture, Model, ModelInput, Progress

if TYPE_CHECKING:
    from torch.utils.data import DataLoader, Dataset

_SCORES = ""  # stands for the class scores among layer names; no layer is called so


@overload
def capture(
    model: Model | nn.Module,
    image: "list[Any] | tuple[Any, ...] | DataLoader[Any] | Dataset[Any] | Iterator[Any]",
    layers: Layers = None,
    *,
    size: int | None = None,
    whole: bool = False,
    logits: bool = True,
    inputs: bool = False,
    cache: ByteCache | None = None,
    progress: Progress | None = None,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | str | None = None,
    detach: bool = True,
    edits: Mapping[Any, Any] | None = None,
) -> CaptureBatch: ...


@overload
def capture(
    model: Model | nn.Module,
    image: Tensor | NDArray[Any] | Mapping[str, Any],
    layers: Layers = None,
    *,
    size: int | None = None,
    whole: bool = False,
    logits: bool = True,
    inputs: bool = False,
    cache: ByteCache | None = None,
    progress: Progress | None = None,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | str | None = None,
    detach: bool = True,
    edits: Mapping[Any, Any] | None = None,
) -> Any: ...  # of one image or of several: a type checker sees no shapes


@overload
def capture(
    model: Model | nn.Module,
    image: Any,
    layers: Layers = None,
    *,
    size: int | None = None,
    whole: bool = False,
    logits: bool = True,
    inputs: bool = False,
    cache: ByteCache | None = None,
    progress: Progress | None = None,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | str | None = None,
    detach: bool = True,
    edits: Mapping[Any, Any] | None = None,
) -> Capture: ...


@with_numbers
def capture(
    model: Model | nn.Module,
    image: Any,
    layers: Layers = None,
    *,
    size: int | None = None,
    whole: bool = False,
    logits: bool = True,
    inputs: bool = False,
    cache: ByteCache | None = None,
    progress: Progress | None = None,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | str | None = None,
    detach: bool = True,
    edits: Mapping[Any, Any] | None = None,
) -> Capture | CaptureBatch:
    """Capture what the chosen layers put out for one image, or for each of a batch.

    The hooks are removed on every way out. Any number of captures can run at once: networks of the
    catalog on replicas, a network of one's own in turn, under its lock.

    Of a batch it is a `CaptureBatch`: ``batch[2]`` the `Capture` of the third image,
    ``batch["conv1"].raw`` what the layer put out for all, ``(N, …)``. A tensor is one pass; of
    others up to 32 images of one size that follow each other are. Numbers can differ from those of
    single passes by rounding. `hookviz.stream` goes through more than memory holds.

    Args:
        model: from `load_model` or `wrap`, or a module of one's own.
        image: anything that `prepare_input` takes; or several: a list of it, a folder, a float
            tensor or array of ``(N, C, H, W)``, pictures of ``(N, H, W, 3)``, a dataset or a
            `DataLoader`, whose items may be ``(x, y)``, or what a Hugging Face processor makes of
            several.
        layers: by name, pattern (``"layer3.*.conv?"``), compiled expression, type
            (`torch.nn.Conv2d`), module or predicate of name and module, as `observe` takes them, or
            several of those; or None for every conv layer. A name may be that of a function that
            `list_layers` lists. Of what else chooses, the layers that run are captured.
        size: side of the input in pixels, in place of the model's own.
        whole: take in the whole image instead of its centre crop.
        logits: keep the network's output for `Capture.predictions`. Without it the pass ends as
            soon as the last wanted layer has run.
        inputs: keep what the layers are given as well, for `Capture.inputs`; in a pass of its own,
            whatever the cache holds.
        cache: a session's cache. What it holds is not computed again, and where it has room for
            every conv layer, or for all that puts out maps where another layer is asked for, a pass
            keeps them all, so that the next layer is there at once. It is for one image, float32
            on the CPU without a graph, and not used for anything else.
        progress: called with the share done after every layer; what it raises ends the run.
        device: where activations are kept: a device of torch's, or ``"same"`` as the network's.
        dtype: in which precision: None for float32, a type of torch's, or ``"same"`` for the
            layer's own.
        detach: False keeps the graph, so that gradients go back through the network, and to the
            image where that is a tensor that wants them.
        edits: what the pass changes, as of `hookviz.edit`; `hookviz.edited` makes a model of it.

    Raises:
        UnknownLayerError: the model has no layer of that name, pattern or type.
        ImageError: the image can't be read, or the batch is empty.
        ModelError: the network can't take this input, or a layer is not run or puts out no tensor,
            or for a batch no part for each image.
        SettingError: `layers` chooses nothing, or there is no such `device` or `dtype`.

    >>> model = hookviz.load_model("shapesnet")
    >>> cap = hookviz.capture(model, "assets/samples/star.jpg")
    >>> cap["stem.first.conv"].values.shape  # (C, H, W)
    torch.Size([32, 64, 64])
    >>> list(cap)[:2]
    ['stem.first.conv', 'stage1.first.conv']
    >>> batch = hookviz.capture(model, torch.rand(4, 3, 64, 64), "stage1.*.conv")  # (N, C, H, W)
    >>> batch["stage1.first.conv"].raw.shape, batch[3]["stage1.first.conv"].raw.shape
    (torch.Size([4, 48, 16, 16]), torch.Size([48, 16, 16]))
    """
    started, storage = time.perf_counter(), Storage(device, dtype, detach)
    model = with_edits(model, edits)
    if is_batch(model, image):
        options: dict[str, Any] = {"size": size, "whole": whole, "detach": detach}
        model_inputs = (_prepared(model, each, **options) for each in images_of(model, image))
        is_one_pass = isinstance(image, Tensor | np.ndarray)
        return capture_images(
            model,
            model_inputs,
            layers,
            inputs=inputs,
            logits=logits,
            progress=progress,
            storage=storage,
            at_once=len(image) if is_one_pass else AT_ONCE,
        )
    model_input = _prepared(model, image, size=size, whole=whole, detach=detach)
    cache = cache if storage == HOST else None
    layers = None if layers is None else several(layers)  # an iterator is gone through once
    is_plain = cache is None and progress is None and detach and not inputs
    look = first_look(model, layers) if is_plain else None
    with unchanged(model.network):
        seen = input_trace(model, model_input, look)
        wanted = wanted_layers(model, seen, layers)
        entries = (
            _CacheEntries(cache, (model.name, model.cache_key, model_input.digest))
            if cache is not None
            else None
        )
        recording = entries.look_up(wanted, logits=logits) if entries and not inputs else None
        passes = 0
        if look is not None and look.has(wanted):
            recording = recording_of(
                model,
                model_input,
                seen,
                wanted,
                output=look.output,
                records=look.recorder.records,
                storage=storage,
            )
            passes = 1
        if recording is None:
            record = entries.worth_keeping(seen, wanted) if entries and not inputs else wanted
            early = not logits
            recording = run(
                model,
                model_input,
                seen,
                record,
                stop_early=early,
                progress=progress,
                inputs=inputs,
                needed=wanted,
                storage=storage,
            )
            passes = 1
            if entries and recording.is_as_traced(seen):
                entries.keep(recording)
    check_labels(model, recording.scores)
    return Capture(
        model=model.name,
        digest=model.cache_key,
        weights=model.weights,
        model_input=model_input,
        activations=recording.in_order(
            seen, (part for name in wanted for part in recording.by_layer[name])
        ),
        answer=answer_for(model, recording.scores if logits else None),
        categories=model.categories,
        seconds=time.perf_counter() - started,
        forward_passes=passes,
        layer_inputs=recording.in_order(seen, recording.inputs),
        made_by=maker_of(model),
        note=sentences(model.note, model_input.note),
        unanswered=recording.unanswered if logits else "",
    )


def _prepared(
    model: Model, image: Any, *, size: int | None, whole: bool, detach: bool
) -> ModelInput:
    """Return the input, with the graph of an image that has one where that is kept."""
    model_input = prepare_input(model, image, size=size, whole=whole)
    if detach or not isinstance(image, Tensor) or not image.requires_grad:
        return model_input
    return replace(model_input, tensor=image.to(model_input.tensor).view_as(model_input.tensor))


def is_cached(
    model: Model,
    model_input: ModelInput,
    layers: str | Iterable[str] | None,
    cache: ByteCache,
    *,
    logits: bool = True,
) -> bool:
    """Return whether `capture` would find all of it in `cache` now, and run nothing.

    Raises:
        UnknownLayerError: the model has no layer of that name.
        ModelError: the network can't take this input, or a layer is not run.
    """
    wanted = wanted_layers(model, input_trace(model, model_input), layers)
    entries = _CacheEntries(cache, (model.name, model.cache_key, model_input.digest))
    return entries.look_up(wanted, logits=logits) is not None


def keep(capture: Capture, cache: ByteCache) -> None:
    """Put what was captured into a cache, where `capture` finds it."""
    by_layer: dict[str, tuple[Activation, ...]] = {}
    for each in capture.activations:
        by_layer[each.layer] = (*by_layer.get(each.layer, ()), each)
    answer = capture.answer
    scores = None if answer is None else answer.as_scores
    recording = Recording(by_layer, scores, complete=answer is not None)
    _CacheEntries(cache, (capture.model, capture.digest, capture.model_input.digest)).keep(
        recording
    )


@dataclass(frozen=True, slots=True)
class _CacheEntries:
    """Entries in a session's cache for one input in one model with certain weights."""

    cache: ByteCache
    key: tuple[str, str, str]

    def look_up(self, wanted: tuple[str, ...], *, logits: bool) -> Recording | None:
        """Return everything wanted, or None where any of it is missing."""
        by_layer = {}
        for name in wanted:
            parts = self.cache.get((*self.key, name))
            if parts is None:
                return None
            by_layer[name] = parts
        found = self.cache.get((*self.key, _SCORES)) if logits else (None, "")
        if found is None:
            return None
        scores, lack = found
        return Recording(by_layer, scores, complete=logits, unanswered=lack)

    def worth_keeping(self, seen: LayerTrace, wanted: tuple[str, ...]) -> tuple[str, ...]:
        """Return the wanted layers, and those likely to be asked for next that there is room for.

        The conv layers; where another layer is wanted, all that put out maps, in half the cache.
        """
        convs, maps = ({layer.name for layer in infos} for infos in (seen.convs, seen.shown))
        choices = [(convs.union(wanted), self.cache.limit)]
        if not convs.issuperset(wanted):
            choices.insert(0, (convs.union(maps, wanted), self.cache.limit // 2))
        for every, room in choices:
            if sum(seen.nbytes[name] for name in every) <= room:
                return tuple(name for name in seen.recordable if name in every)
        return wanted

    def keep(self, recording: Recording) -> None:
        """Put in what fits; an activation larger than the cache is shown and not kept."""
        if recording.complete:
            size = 0 if recording.scores is None else recording.scores.values.nbytes
            self.cache.put((*self.key, _SCORES), (recording.scores, recording.unanswered), size)
        for name, parts in recording.by_layer.items():
            self.cache.put((*self.key, name), parts, sum(part.nbytes for part in parts))
