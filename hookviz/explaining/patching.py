"""Patch activations of one image into a pass over another, and measure what the target does.

Activation patching (Vig et al., "Causal Mediation Analysis for Interpreting Neural NLP", 2020; Meng
et al., "Locating and Editing Factual Associations in GPT", 2022):

1. Run the clean image and the corrupted one, and keep what the layers put out for each.
2. Run the corrupted image with one part of one layer as it was for the clean image: the whole
   layer, a channel or a cell. Every call of the layer gets its own.
3. The part's share is (patched − corrupted) / (clean − corrupted), of the target.

Attribution patching (Nanda, "Attribution Patching", 2023) estimates all shares from one backward
pass: the gradient of the target at the corrupted image's activation, times what the part changes.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.capturing.inputs import prepare
from hookviz.capturing.layer_trace import LayerTrace, input_trace
from hookviz.capturing.unsupported_outputs import check_can_intervene
from hookviz.capturing.wanted_layers import wanted_layers
from hookviz.errors import ModelError, SettingError, one_of
from hookviz.explaining.attribution_patching import direct_effects
from hookviz.explaining.attribution_target import AttributionTarget
from hookviz.explaining.batched_passes import progress_of_part, rising
from hookviz.explaining.layer_parts import PARTS, LayerParts
from hookviz.explaining.named_class import class_number
from hookviz.explaining.part_changes import MAX_WORK, PartChanges, work_behind
from hookviz.explaining.patched_shares import Patching, Shares
from hookviz.explaining.scoring import class_scores
from hookviz.hooking import hooks
from hookviz.hooking.default_device import with_numbers
from hookviz.hooking.forward_pass import ProgressReporter, private_replica
from hookviz.hooking.function_calls import is_function, nearest_module, no_module
from hookviz.language.saying import say
from hookviz.models.wrapping import as_model
from hookviz.outputs.declaration import NUMBER, Output
from hookviz.types import ActivationKey, LayerInfo, Model, ModelInput, Progress, ignore
from hookviz.wording import number, times

_SAME = 1e-6  # share of a target below which a difference is rounding


@with_numbers
def patch(
    model: Model | nn.Module,
    clean: Any,
    corrupted: Any,
    layers: str | Iterable[str] | None = None,
    *,
    target: int | str | Callable[[Any], Tensor] | None = None,
    by: str = "layer",
    size: int | None = None,
    whole: bool = False,
    progress: Progress = ignore,
) -> Patching:
    """Measure which parts of a network bring a target back, activation by activation.

    Each is taken from a pass over the clean image, and put into a pass over the corrupted one
    (activation patching). Beside it stands what the gradient estimates (attribution patching).

    Args:
        model: from `load_model` or `wrap`, or a module of one's own.
        clean: an image that the target is high for, anything that `capture` takes.
        corrupted: one that it is low for, such as the same one with a part hidden.
        layers: layers or blocks by name; None for the convolutions, or a transformer's blocks.
        target: number or name of a class, whose score it is, before any softmax; or a function of
            what the network puts out for one image; the clean image's likeliest class by default.
        by: ``"layer"``; ``"channel"``, of all cells and tokens; or ``"cell"``, of all channels,
            where tokens that stand for no cell, such as a class token, are left out.
        size: side of the input in pixels, in place of the model's own.
        whole: take in the whole images instead of their centre crops.
        progress: called with the share done; what it raises ends the run.

    Raises:
        UnknownLayerError: the model has no such layer.
        SettingError: the model has no such class, `by` means nothing, the target is the same for
            both images, or their inputs have two shapes.
        ModelError: a layer has no channels or cells that anybody knows, the network puts out no
            scores, or it would take more than 10¹³ multiply-adds.

    >>> model = hookviz.load_model("shapesnet")
    >>> star, heart = "assets/samples/star.jpg", "assets/samples/heart.jpg"
    >>> found = hookviz.patch(model, star, heart, ["stem.first.conv", "stage3.first.conv"])
    >>> [f"{row.layer}: {row.share:.0%}" for row in found.table()]
    ['stem.first.conv: 100%', 'stage3.first.conv: 93%']
    """
    model = as_model(model)
    if callable(target):
        model = replace(model, output=Output(NUMBER, target), categories=(say("the target"),))
        target = 0
    one, other = (prepare(model, image, size=size, whole=whole) for image in (clean, corrupted))
    return patch_inputs(model, one, other, layers, target=target, by=by, progress=progress)


def patch_inputs(
    model: Model,
    clean: ModelInput,
    corrupted: ModelInput,
    layers: str | Iterable[str] | None = None,
    *,
    target: int | str | None,
    by: str,
    progress: Progress,
) -> Patching:
    """Measure as `patch` does, between inputs that are made already; with its errors."""
    one_of("by", by, PARTS)
    _check_shapes(clean, corrupted)
    trace = input_trace(model, clean)
    infos = _patched_layers(model, trace, layers)
    kept, scores = _run(model, clean, infos)
    own, before = _run(model, corrupted, infos)
    index = _class_of(model, target, scores)
    high, low = float(scores[index]), float(before[index])
    _check_differs(high, low, model.title)
    parts = [
        LayerParts(model, trace, info, (kept[info.name], own[info.name]), by) for info in infos
    ]
    _check_work(model, trace, parts)
    total = 1 + sum(each.count for each in parts)
    done, reporter = 1, rising(progress)
    quantity = AttributionTarget(index)
    gradients = progress_of_part(reporter, 0, 1, total)
    direct, note = direct_effects(model, corrupted, quantity, parts, gradients)
    changes: dict[str, Tensor] = {}
    for each in parts:
        within = ProgressReporter(progress_of_part(reporter, done, each.count, total))
        after = _PatchedPasses(model, corrupted, each).scores_with_each(before, within)
        changes[each.info.name] = after[:, index] - before[index]
        done += each.count
    shares, estimates = (
        {each.info.name: _shares(found[each.info.name], high - low, each) for each in parts}
        for found in (changes, direct)
    )
    target_name = quantity.describe(model)
    return Patching(model.title, target_name, by, high, low, shares, estimates, note)


class _PatchedPasses(PartChanges):
    """Runs passes with parts of one layer as they were for the clean image."""

    def __init__(self, model: Model, corrupted: ModelInput, parts: LayerParts) -> None:
        super().__init__(model, corrupted, parts.info, parts.count)
        self._clean = {at.call: (parts.numbers[at], parts.clean[at]) for at in parts.clean}

    def change(self, row: Tensor, call: hooks.Call, parts: Sequence[int]) -> None:
        """Write what the layer put out for the clean image; a call that it lacks stays."""
        if call.index not in self._clean:
            return
        numbers, clean = self._clean[call.index]
        if row.numel() != clean.numel():
            raise ModelError(
                say(
                    "Layer {layer!r} puts out {shape} for one image and {other} for the other, so "
                    "nothing of it can be patched. Choose another layer.",
                    layer=call.layer,
                    shape=times(clean.shape),
                    other=times(row.shape),
                )
            )
        chosen = torch.isin(numbers, torch.tensor(parts)).to(row.device)
        row.copy_(torch.where(chosen.reshape(row.shape), clean.reshape(row.shape), row))


def _run(
    model: Model, model_input: ModelInput, infos: Sequence[LayerInfo]
) -> tuple[dict[str, dict[ActivationKey, Tensor]], Tensor]:
    """Return what the layers put out, by layer and call, and the scores, float64 ``(classes,)``."""
    outputs: dict[str, dict[ActivationKey, Tensor]] = {info.name: {} for info in infos}

    def keep(call: hooks.Call) -> None:
        for path, output in islice(hooks.tensors_in(call.output), 1):
            outputs[call.layer][ActivationKey(call.layer, call.index, path)] = (
                output.detach().clone()
            )

    with private_replica(model) as replica, hooks.observe(replica, outputs, keep):
        scores = class_scores(model, replica, model_input.tensor).values
    return outputs, scores[0].detach().cpu().double()


def _shares(changes: Tensor, difference: float, parts: LayerParts) -> Shares:
    shares: Shares = (changes / difference).reshape(parts.shape).numpy()
    return shares


def _patched_layers(
    model: Model, trace: LayerTrace, layers: str | Iterable[str] | None
) -> tuple[LayerInfo, ...]:
    """Return the layers and blocks to patch, in order of execution."""
    if layers is None:
        names = {info.name for info in trace.usual}
    else:
        names = set(wanted_layers(model, trace, layers))
    for name in sorted(names):
        if is_function(name):
            raise no_module(name, model.title, nearest_module(name))
        check_can_intervene(model, trace, name)
    infos = tuple(info for info in trace.every if info.name in names)
    silent = names - {info.name for info in infos}
    if silent or not infos:
        raise ModelError(
            say(
                "{layer} of {model} puts out no tensor of the image, so nothing can be patched "
                "there. Choose another layer, such as {other!r}.",
                layer=repr(min(silent, default=model.title)),
                model=model.title,
                other=trace.every[0].name,
            )
        )
    return infos


def _class_of(model: Model, target: int | str | None, scores: Tensor) -> int:
    if target is None:
        return int(scores.argmax())
    return class_number(target, model.categories, len(scores), model.title)


def _check_shapes(clean: ModelInput, corrupted: ModelInput) -> None:
    one, other = clean.tensor.shape[1:], corrupted.tensor.shape[1:]
    if one != other:
        raise SettingError(
            say(
                "The clean input has the shape {shape} and the corrupted one {other}: activations "
                "can be patched between inputs of one shape. size= gives both images one.",
                shape=times(one),
                other=times(other),
            )
        )


def _check_differs(clean: float, corrupted: float, title: str) -> None:
    """Refuse a target that both images give the same value."""
    if not abs(clean - corrupted) > _SAME * max(abs(clean), abs(corrupted)):
        raise SettingError(
            say(
                "The target is {value} for both images in {model}, so there is no difference that "
                "a part could bring back. Take another image, or another target.",
                value=number(clean),
                model=title,
            )
        )


def _check_work(model: Model, trace: LayerTrace, parts: Sequence[LayerParts]) -> None:
    """Refuse what would take hours."""
    work = sum(each.count * work_behind(trace, each.info.name) for each in parts)
    if work > MAX_WORK:
        raise ModelError(
            say(
                "To patch {count:,} parts of {model} one by one takes {multiply_adds} "
                "multiply-adds, more than {limit}. Choose fewer layers, a smaller input, or "
                "by='layer'.",
                count=sum(each.count for each in parts),
                model=model.title,
                multiply_adds=number(work),
                limit=number(MAX_WORK),
            )
        )
