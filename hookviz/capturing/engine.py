"""Capture what layers put out: a model, an image and layers in; a `Capture` out."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any
from weakref import ref

from torch import nn

from hookviz.capturing.cache import ByteCache
from hookviz.capturing.inputs import prepare
from hookviz.capturing.layer_trace import LayerTrace, input_trace
from hookviz.capturing.recorded_pass import Recording, in_order, run, wanted_layers
from hookviz.errors import ModelError
from hookviz.hooking.default_device import with_numbers
from hookviz.hooking.network_state import unchanged
from hookviz.language.saying import say, sentences
from hookviz.models.wrapping import as_model
from hookviz.outputs.answer import Answer, Reading, Scores
from hookviz.outputs.declaration import EMBEDDING
from hookviz.types import Activation, Capture, Model, ModelInput, Progress

_SCORES = ""  # stands for the class scores among layer names; no layer is called so


@with_numbers
def capture(
    model: Model | nn.Module,
    image: Any,
    layers: str | Iterable[str] | None = None,
    *,
    size: int | None = None,
    whole: bool = False,
    logits: bool = True,
    inputs: bool = False,
    cache: ByteCache | None = None,
    progress: Progress | None = None,
) -> Capture:
    """Capture what the named layers put out for one image.

    The hooks are removed on every way out. Any number of captures can run at once: networks of the
    catalog on replicas, a network of one's own in turn, under its lock.

    Args:
        model: from `load_model` or `wrap`, or a module of one's own.
        image: anything that `prepare` takes.
        layers: a layer's name, several, or None for every conv layer.
        size: side of the input in pixels, in place of the model's own.
        whole: take in the whole image instead of its centre crop.
        logits: keep the network's output for `Capture.predictions`. Without it the pass ends as
            soon as the last wanted layer has run.
        inputs: keep what the layers are given as well, for `Capture.inputs`; in a pass of its own,
            whatever the cache holds.
        cache: a session's cache. What it holds is not computed again, and where it has room for
            every conv layer, or for all that puts out maps where another layer is asked for, a pass
            keeps them all, so that the next layer is there at once.
        progress: called with the share done after every layer; what it raises ends the run.

    Raises:
        UnknownLayerError: the model has no layer of that name.
        ImageError: the image can't be read.
        ModelError: the network can't take this input, or a layer is not run or puts out no tensor.

    >>> model = hookviz.load_model("shapesnet")
    >>> cap = hookviz.capture(model, "assets/samples/star.jpg")
    >>> cap["stem.first.conv"].values.shape  # (C, H, W)
    torch.Size([32, 64, 64])
    >>> list(cap)[:2]
    ['stem.first.conv', 'stage1.first.conv']
    """
    started = time.perf_counter()
    model = as_model(model)
    model_input = prepare(model, image, size=size, whole=whole)
    with unchanged(model.network):
        seen = input_trace(model, model_input)
        wanted = wanted_layers(model, seen, layers)
        entries = (
            _CacheEntries(cache, (model.name, model.cache_key, model_input.digest))
            if cache is not None
            else None
        )
        recording = entries.look_up(wanted, logits=logits) if entries and not inputs else None
        passes = 0
        if recording is None:
            record = entries.worth_keeping(seen, wanted) if entries and not inputs else wanted
            early = not logits
            recording = run(
                *(model, model_input, seen, record),
                stop_early=early,
                progress=progress,
                inputs=inputs,
                needed=wanted,
            )
            passes = 1
            if entries:
                entries.keep(recording)
    _check_labels(model, recording.scores)
    return Capture(
        model=model.name,
        digest=model.cache_key,
        weights=model.weights,
        model_input=model_input,
        activations=in_order(seen, (part for name in wanted for part in recording.by_layer[name])),
        answer=answer_for(model, recording.scores if logits else None),
        categories=model.categories,
        seconds=time.perf_counter() - started,
        forward_passes=passes,
        layer_inputs=in_order(seen, recording.inputs),
        made_by=maker_of(model),
        note=sentences(model.note, model_input.note),
        unanswered=recording.unanswered if logits else "",
    )


def answer_for(model: Model, scores: Scores | None, image: int = 0) -> Answer | None:
    """Return what the network answered for one of the images of a pass."""
    if scores is None:
        return None
    areas = None if scores.areas is None else scores.areas[image].clone()
    boxes = None if scores.boxes is None else scores.boxes[image].clone()
    reading = Reading(scores.kind, model.output.unit)
    return Answer(scores.values[image].clone(), reading, areas, boxes)


def _check_labels(model: Model, scores: Scores | None) -> None:
    """Refuse labels of another number than the classes that a network puts out."""
    labels = len(model.categories)
    if model.fixed_digest or not labels or scores is None or labels == scores.values.shape[1]:
        return
    if scores.kind == EMBEDDING:  # of a backbone whose configuration has a classifier's labels
        return
    raise ModelError(
        say(
            "categories has {label_count:,} labels, and {model} puts out {class_count:,} "
            "classes; give one label per class, in the order of its outputs.",
            label_count=labels,
            model=model.title,
            class_count=scores.values.shape[1],
        )
    )


def maker_of(model: Model) -> Callable[[], Model | None]:
    """Return a function that returns the model while somebody keeps it, or its own network."""
    known, network = ref(model), ref(model.network)
    if model.fixed_digest or model.replaced:
        return known
    blank = replace(model, network=nn.Identity())

    def made_by() -> Model | None:
        kept = network()
        return known() or (None if kept is None else replace(blank, network=kept))

    return made_by


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
