"""Resolve the layer that a view shows, and record its output.

A link may name a layer that this network lacks, or one that is not in the current list. Then the
layer before it is shown, or the first one, with a sentence that says so.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

import torch

from hookviz.capturing import engine
from hookviz.capturing.layer_trace import LayerTrace, steps_after
from hookviz.drawing.dimensions import middle_maps
from hookviz.errors import HookVizError, nearest_names, shorten
from hookviz.explorer.subject import Subject, between_layers
from hookviz.explorer.view import View
from hookviz.language.saying import joined, say
from hookviz.types import ActivationKey, Capture, LayerInfo, Model
from hookviz.wording import times

Listed = Literal["conv", "maps"]


class ResolvedView(NamedTuple):
    """Layer that a view shows.

    Attributes:
        layer: the layer.
        step: whose output is shown: the layer's own, or that of a step after it.
        listed: which list of layers it is in, one of `hookviz.explorer.view.LISTS`; None where
            it is of the subject's own.
        layers: all of that list, in order of execution.
        warning: why it is not the one that was asked for; empty where it is.
        frame: which frame of video, or slice of a volume, is asked for; None for the middle one.
    """

    layer: LayerInfo
    step: ActivationKey
    listed: Listed | None
    layers: Sequence[LayerInfo]
    warning: str = ""
    frame: int | None = None


class Steps(NamedTuple):
    """Outputs of one layer that can be shown: its own, or those of the steps after it.

    Attributes:
        word: the field of a view that chooses among them.
        outputs: the addresses by the English words of a link; the first is shown without a choice.
    """

    word: Literal["after", "output"]
    outputs: Mapping[str, ActivationKey]


def resolve(subject: Subject, view: View) -> ResolvedView:
    """Return the layer that a view shows, or the nearest one in the list.

    A layer that runs but is not in the list leads to the one of it that returned last before: of a
    block to the last of its parts. One that does not run leads to where the subject begins.

    Raises:
        HookVizError: the network runs no layer that puts out maps.
    """
    trace, asked, offered = subject.trace, view.layer, subject.offered
    listed = None if offered else list_of(trace, asked, view.layers)
    layers = offered or (trace.usual if listed == "conv" else trace.shown)
    if not layers:
        raise HookVizError(no_layer(subject.model, trace))
    by_name = {layer.name: layer for layer in layers}
    name = (
        last_before(asked, tuple(trace.recordable), by_name) or subject.begins_at or layers[0].name
    )
    if offered:
        warning = "" if asked in trace.recordable else why_another(asked, trace, by_name)
        return ResolvedView(by_name[name], ActivationKey(name), listed, layers, warning, view.frame)
    steps = steps_of(trace, by_name[name])
    chosen = view.after if steps.word == "after" else view.output
    step = steps.outputs.get(chosen or "", next(iter(steps.outputs.values())))
    warning = why_another(asked, trace, by_name)
    return ResolvedView(by_name[name], step, listed, layers, warning, view.frame)


def list_of(trace: LayerTrace, asked: str | None, layers: str | None) -> Listed:
    """Return the list that a link means: of all with maps where `asked` is beyond the usual."""
    usual = {layer.name for layer in trace.usual}
    beyond = asked in {layer.name for layer in trace.shown} - usual or not usual
    return "maps" if beyond or layers == "maps" else "conv"


def last_before(asked: str | None, returned: Sequence[str], names: Collection[str]) -> str | None:
    """Return `asked` if it is in `names`, else the one that returned last before it, or None.

    >>> last_before("block.add", ["conv1", "conv2", "block.add"], {"conv1", "conv2"})
    'conv2'
    """
    if asked in names or asked not in returned:
        return asked if asked in names else None
    return next(
        (name for name in reversed(returned[: returned.index(asked)]) if name in names), None
    )


def steps_of(trace: LayerTrace, layer: LayerInfo) -> Steps:
    """Return the outputs of a layer that can be shown.

    A convolution has its own output and those of its batch norm, activation and pooling, by kind.
    Another layer or a block has each of its calls, and each part of its output.
    """
    if all(conv.name != layer.name for conv in trace.convs):
        outputs = trace.shown_outputs[layer.name]
        return Steps("output", {call_words(address): address for address in outputs})
    kinds = {info.name: info.kind for info in trace.listed}
    steps = {layer.kind: ActivationKey(layer.name)}
    for address in steps_after(trace, layer.name):
        steps[unique_kind(kinds[address.layer], steps)] = address
    return Steps("after", steps)


def captured(subject: Subject, resolved: ResolvedView) -> Capture:
    """Return the capture of the layer that is shown; as `capture_layer`."""
    return capture_layer(subject, resolved.step.layer)


def capture_layer(subject: Subject, layer: str) -> Capture:
    """Return the capture of a layer: from the cache, the shared one, or a pass in a turn.

    Raises:
        HookVizError: the pass can't be run, or takes longer than one may.
    """
    model, model_input, shared = subject.model, subject.model_input, subject.shared
    cache, key = subject.cache, subject.key
    if shared is not None and not engine.is_cached(model, model_input, layer, cache):
        shared.hand_over(cache, key)
    capture = cached_capture(subject, layer)  # which needs no turn
    if capture is not None:
        return capture
    with subject.take_turn(model.title, "capture", layer) as run:
        if shared is not None:  # who had the turn before may have run it
            shared.hand_over(cache, key)
        capture = engine.capture(
            model, model_input, layer, cache=cache, progress=between_layers(run, model)
        )
        if shared is not None and capture.forward_passes:
            cache.hand_over(shared, key)
    return capture


def cached_capture(
    subject: Subject, layers: str | Sequence[str], *, logits: bool = True
) -> Capture | None:
    """Return the capture of layers that are all in the cache; None where one is not."""
    model, model_input, cache = subject.model, subject.model_input, subject.cache
    if not engine.is_cached(model, model_input, layers, cache, logits=logits):
        return None
    try:
        return engine.capture(
            model, model_input, layers, logits=logits, cache=cache, progress=_run_nothing
        )
    except _NotCachedError:  # it gave way to another session's in between
        return None


class _NotCachedError(Exception):
    """Ends a pass that was not to be run."""


def _run_nothing(_share: float) -> None:
    raise _NotCachedError


def maps(subject: Subject, resolved: ResolvedView) -> torch.Tensor:
    """Return the maps that are shown, float32 ``(C, H, W)``: of a volume those of one slice.

    Raises:
        HookVizError: as `captured`.
    """
    values = captured(subject, resolved)[str(resolved.step)].values
    return middle_maps(values, resolved.frame)


def call_words(address: ActivationKey) -> str:
    """Name a call, counted from 1, and a part of what it returned, in few signs."""
    return " ".join((f"call {address.call + 1}", *address.path))


def unique_kind(kind: str, steps: Collection[str]) -> str:
    """Return the kind, numbered where there is one of it already."""
    name, number = kind, 2
    while name in steps:
        name, number = f"{kind} {number}", number + 1
    return name


def not_here(parameter: str, asked: str, known: Collection[str]) -> str:
    """Return the sentence for an unknown value in a link, with the nearest known ones."""
    near = nearest_names(asked, known, count=2)
    return say(
        "This link asks for the {parameter} {value!r}, which is not here.",
        parameter=say(parameter),
        value=shorten(asked, 60),
    ) + (say(" The nearest: {names}.", names=joined(near)) if near else "")


def why_another(asked: str | None, trace: LayerTrace, names: Collection[str]) -> str:
    """Return why another layer is shown than the view asks for; empty where it is the same."""
    if asked is None or asked in trace.shown_outputs:
        return ""
    if asked not in trace.recordable:
        return not_here("layer", asked, names)
    shape = next((layer.output_shape for layer in trace.listed if layer.name == asked), ())
    return say(
        "{layer} puts out {output}: this is the layer before it. Summary and other lenses ",
        layer=asked,
        output=_output_without_maps(shape),
    ) + say("look at all layers.")


def _output_without_maps(shape: tuple[int, ...]) -> str:
    if len(shape) > 1:
        return say("{shape} numbers of unknown rows and columns, no maps", shape=times(shape))
    return say("{shape} numbers, no maps", shape=times(shape)) if shape else say("no maps")


def no_layer(model: Model, trace: LayerTrace) -> str:
    """Say that a network runs no layer that could be shown, or none at all."""
    if trace.listed:
        return say(
            "{model} runs no layer whose channels could be shown. Lenses such as Step by "
            "step and Summary look at its other layers.",
            model=model.title,
        )
    return say(
        "{model} runs no layer to look at: it computes by functions alone. Layers are the modules "
        "that it calls, such as a torch.nn.Conv2d.",
        model=model.title,
    )
