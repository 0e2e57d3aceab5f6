"""One run: a model, an image and layers in; a `Capture` out."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hookviz.capturing.cache import ByteCache
from hookviz.capturing.inputs import prepare
from hookviz.capturing.survey import Survey, survey_input
from hookviz.errors import ModelError, SettingError, UnknownLayerError, shorten
from hookviz.hooking import conduct, hooks
from hookviz.hooking.forward_pass import Telling, forward_pass, private_replica
from hookviz.types import Activation, Capture, Model, ModelInput, Progress

_SCORES = ""  # stands for the class scores among layer names; no layer is called so


def capture(
    model: Model,
    image: Any,
    layers: str | Iterable[str] | None = None,
    *,
    size: int | None = None,
    whole: bool = False,
    logits: bool = True,
    cache: ByteCache | None = None,
    progress: Progress | None = None,
) -> Capture:
    """What the named layers put out for one image.

    The hooks sit on a private replica of the network and are removed on every way out, so any
    number of captures can run at once on one model.

    Args:
        model: from `load_model` or `wrap`.
        image: anything that `prepare` takes.
        layers: a layer's name, several, or None for every conv layer.
        size: side of the input in pixels, in place of the model's own.
        whole: take in the whole image instead of its centre crop.
        logits: keep the network's output for `Capture.predictions`. Without it the pass ends as
            soon as the last wanted layer has run.
        cache: a session's cache. What it holds is not computed again, and where it has room for
            every conv layer, or for all that puts out maps where another layer is asked for, a pass
            keeps them all, so that the next layer is there at once.
        progress: told the share done after every layer; what it raises ends the run.

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
    made = prepare(model, image, size=size, whole=whole)
    seen = survey_input(model, made)
    wanted = _wanted(model, seen, layers)
    shelf = _Shelf(cache, (model.name, model.digest, made.digest)) if cache is not None else None
    found = shelf.look_up(wanted, logits=logits) if shelf else None
    passes = 0
    if found is None:
        record = shelf.worth_keeping(seen, wanted) if shelf else wanted
        found = _run(model, made, seen, record, stop_early=not logits, progress=progress)
        passes = 1
        if shelf:
            shelf.keep(found)
    return Capture(
        model=model.name,
        digest=model.digest,
        weights=model.weights,
        model_input=made,
        activations=_in_order(seen, (part for name in wanted for part in found.by_layer[name])),
        logits=found.logits if logits else None,
        categories=model.categories,
        seconds=time.perf_counter() - started,
        forward_passes=passes,
    )


def is_cached(
    model: Model,
    made: ModelInput,
    layers: str | Iterable[str] | None,
    cache: ByteCache,
    *,
    logits: bool = True,
) -> bool:
    """Whether `capture` would find all of it in `cache` now, and run nothing.

    Raises:
        UnknownLayerError: the model has no layer of that name.
        ModelError: the network can't take this input, or a layer is not run.
    """
    wanted = _wanted(model, survey_input(model, made), layers)
    shelf = _Shelf(cache, (model.name, model.digest, made.digest))
    return shelf.look_up(wanted, logits=logits) is not None


@dataclass(frozen=True, eq=False, slots=True)
class _Found:
    """Every activation of each layer, and the class scores; None where there are none."""

    by_layer: dict[str, tuple[Activation, ...]]
    logits: Tensor | None
    complete: bool


def _wanted(model: Model, seen: Survey, layers: str | Iterable[str] | None) -> tuple[str, ...]:
    """The layers asked for, once each, in order of execution."""
    if layers is None:
        return tuple(layer.name for layer in seen.convs)
    listed: Any = layers if isinstance(layers, Iterable) else [layers]
    asked: dict[Any, None] = dict.fromkeys([layers] if isinstance(layers, str) else listed)
    for name in asked:
        if not isinstance(name, str):
            first = next(iter(seen.calls), "conv1")
            raise SettingError(
                f"layers={shorten(repr(layers))}: a layer goes by its name, such as {first!r}, not "
                f"by a {type(name).__name__}; list_layers tells the names."
            )
        if name in seen.calls:
            continue
        if name in dict(model.network.named_modules(remove_duplicate=False)):
            raise ModelError(
                f"Layer {name!r} of {model.title} is not run by a forward pass, "
                "or it goes by another name there."
            )
        raise UnknownLayerError(f"layer in {model.title}", name, seen.calls)
    return tuple(name for name in seen.calls if name in asked)


def _in_order(seen: Survey, activations: Iterable[Activation]) -> tuple[Activation, ...]:
    """In the order in which the calls returned; calls that the survey did not see come last."""
    last = len(seen.turns)
    return tuple(
        sorted(
            activations,
            key=lambda activation: seen.turns.get(
                (activation.address.layer, activation.address.call), last
            ),
        )
    )


def _run(
    model: Model,
    made: ModelInput,
    seen: Survey,
    names: tuple[str, ...],
    *,
    stop_early: bool,
    progress: Progress | None,
) -> _Found:
    """One forward pass, and a second one where the network overwrote what nobody expected."""
    copies: Iterable[str] = seen.overwritten
    if not seen.only_computes:  # the end may come later than the survey says
        stop_early = False
    if not (seen.only_computes and conduct.is_known_code(model.network)):
        copies = names  # version counters may miss a write
    watch = _Watch(seen, names, copies, stop_early, progress)
    output = _forward(model, made, watch)
    spoiled = watch.recorder.overwritten_layers()
    if spoiled:
        watch = _Watch(seen, names, seen.overwritten | spoiled, stop_early, progress)
        output = _forward(model, made, watch)
    by_layer: dict[str, tuple[Activation, ...]] = dict.fromkeys(names, ())
    for record in watch.recorder.records:
        activation = Activation(record.address, _without_batch(record.tensor))
        by_layer[record.address.layer] += (activation,)
    for name, parts in by_layer.items():
        if not parts:
            raise ModelError(f"Layer {name!r} of {model.title} put out no tensor to look at.")
    return _Found(by_layer, _as_scores(output), complete=output is not None)


class _Watch:
    """What one pass does at each call: record it, tell how far it is, end it when all is there."""

    def __init__(
        self,
        seen: Survey,
        names: tuple[str, ...],
        copy: Iterable[str],
        stop_early: bool,
        progress: Progress | None,
    ) -> None:
        self.recorder = hooks.Recorder(copy)
        self._wanted = frozenset(names)
        self._calls_to_come = sum(seen.calls[name] for name in names)
        self._stop_early = stop_early
        self._counted = frozenset(layer.name for layer in seen.layers if progress)
        self.telling = Telling(progress, sum(layer.calls for layer in seen.layers))

    @property
    def layers(self) -> frozenset[str]:
        """The layers that need a hook."""
        return self._wanted | self._counted

    def see(self, call: hooks.Call) -> None:
        """Take in one call of a hooked layer."""
        if call.layer in self._wanted:
            self.recorder.see(call)
            self._calls_to_come -= 1
        if call.layer in self._counted:
            self.telling.step()
        if self._stop_early and self._calls_to_come == 0:
            raise hooks.StopForward


def _forward(model: Model, made: ModelInput, watch: _Watch) -> Any:
    """The network's output; None where the pass was ended after its last wanted layer."""
    with (
        private_replica(model) as replica,
        hooks.observe(replica, watch.layers, watch.see),
    ):
        return forward_pass(model, replica, made.tensor, watch.telling)


def _without_batch(tensor: Tensor) -> Tensor:
    """Float32 on the CPU in memory of its own size, without a batch dimension of 1.

    Complex numbers stay complex64: their real part alone would be another number.
    """
    kind = torch.complex64 if tensor.is_complex() else torch.float32
    values = tensor.detach().to("cpu", kind).contiguous()
    if values.is_inference() or values.untyped_storage().nbytes() > values.nbytes:
        values = values.clone()  # a view would keep all of a larger tensor alive
    return values[0] if values.ndim > 1 and values.shape[0] == 1 else values


def _as_scores(output: Any) -> Tensor | None:
    if isinstance(output, Tensor) and output.ndim == 2 and output.shape[0] == 1:
        return _without_batch(output)
    return None


@dataclass(frozen=True, slots=True)
class _Shelf:
    """The place in a session's cache of one input in one model with certain weights."""

    cache: ByteCache
    key: tuple[str, str, str]

    def look_up(self, wanted: tuple[str, ...], *, logits: bool) -> _Found | None:
        """Everything wanted, or None where any of it is missing."""
        by_layer = {}
        for name in wanted:
            parts = self.cache.get((*self.key, name))
            if parts is None:
                return None
            by_layer[name] = parts
        scores = self.cache.get((*self.key, _SCORES)) if logits else (None,)
        return None if scores is None else _Found(by_layer, scores[0], complete=logits)

    def worth_keeping(self, seen: Survey, wanted: tuple[str, ...]) -> tuple[str, ...]:
        """Beside the wanted layers what is likely to be asked for next, where the cache has room.

        The conv layers; where another layer is wanted, all that put out maps, in half the cache.
        """
        convs, maps = ({layer.name for layer in some} for some in (seen.convs, seen.maps))
        choices = [(convs.union(wanted), self.cache.limit)]
        if not convs.issuperset(wanted):
            choices.insert(0, (convs.union(maps, wanted), self.cache.limit // 2))
        for every, room in choices:
            if sum(seen.nbytes[name] for name in every) <= room:
                return tuple(name for name in seen.calls if name in every)
        return wanted

    def keep(self, found: _Found) -> None:
        """Put in what fits; an activation larger than the cache is shown and not kept."""
        if found.complete:
            size = found.logits.nbytes if found.logits is not None else 0
            self.cache.put((*self.key, _SCORES), (found.logits,), size)
        for name, parts in found.by_layer.items():
            self.cache.put((*self.key, name), parts, sum(part.nbytes for part in parts))
