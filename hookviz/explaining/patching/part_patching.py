"""Patch a layer's whole output, its channels, its cells or attention heads, for `hookviz.patch`.

The parts are numbered, then patched one by one. Attribution patching (Nanda, "Attribution Patching:
Activation Patching At Industrial Scale", 2023) estimates all effects by one backward pass: the
gradient of the target at the corrupted image's activation, times what patching changes there.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from math import prod

import torch
from torch import Tensor

from hookviz.capturing.layer_trace import LayerTrace, input_trace
from hookviz.capturing.wanted_layers import no_cells_error
from hookviz.errors import ModelError
from hookviz.explaining.attention.weights import attending_layers, no_attention_error
from hookviz.explaining.attribution.batched_passes import progress_of_part
from hookviz.explaining.attribution.gradients import GradientPass
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.explaining.patching.part_changes import MAX_WORK, PartChanges, work_behind
from hookviz.explaining.scores.scoring import class_scores
from hookviz.hooking import hooks
from hookviz.hooking.attention_calls import HeadChange, HeadOutputs
from hookviz.hooking.device import device_and_dtype
from hookviz.hooking.forward_pass import (
    ProgressReporter,
    backward_pass,
    differentiable,
    private_replica,
)
from hookviz.language.saying import say
from hookviz.types import FIRST, WINDOWS, ActivationKey, LayerInfo, Model, ModelInput, Progress
from hookviz.wording import number, times

PARTS = ("layer", "channel", "cell")

_Outputs = Mapping[ActivationKey, Tensor]
"""What one layer puts out, by its calls."""


class _LayerParts:
    """Parts of one layer's outputs for two images, in all its calls.

    Attributes:
        info: the layer.
        clean: what it puts out for the clean image, by address.
        corrupted: what it puts out for the corrupted one.
        numbers: by address, of the output's shape: the part that each of its numbers belongs to;
            -1 for none.
        shape: of the parts: ``()`` of the whole, ``(C,)`` or ``(H, W)``.
        count: how many there are.
    """

    def __init__(
        self,
        model: Model,
        trace: LayerTrace,
        info: LayerInfo,
        outputs: tuple[_Outputs, _Outputs],
        by: str,
    ) -> None:
        """Take what a layer puts out for either image, and its parts by one of `PARTS`.

        Raises:
            ModelError: nobody knows the channels or the cells, or its calls have different ones.
        """
        self.info, (self.clean, self.corrupted) = info, outputs
        found = {at: _numbered(model, trace, at, each, by) for at, each in self.clean.items()}
        shapes = dict.fromkeys(shape for _, shape in found.values())
        self.numbers = {at: numbers for at, (numbers, _) in found.items()}
        self.shape = next(iter(shapes), ())
        self.count = prod(self.shape)
        if len(shapes) > 1:
            raise ModelError(
                say(
                    "Layer {layer!r} of {model} runs {count} times in a pass, and puts out parts "
                    "of {shapes}. by='layer' takes each of its outputs as a whole.",
                    layer=info.name,
                    model=model.title,
                    count=len(found),
                    shapes=", ".join(map(times, shapes)),
                )
            )


def _numbered(
    model: Model, trace: LayerTrace, address: ActivationKey, output: Tensor, by: str
) -> tuple[Tensor, tuple[int, ...]]:
    """Return the part that each number of an output belongs to, and the shape of the parts."""
    places = torch.arange(output.numel()).reshape(output.shape)
    if by == "layer":
        return places * 0, ()
    layout = trace.layout_of(address)
    if by == "channel":
        if not (layout.last or layout.order == FIRST):
            raise ModelError(
                say(
                    "Nobody knows which axis of {shape} counts the channels that layer {layer!r} "
                    "of {model} puts out. by='layer' takes its output as a whole.",
                    shape=times(output.shape),
                    layer=address.layer,
                    model=model.title,
                )
            )
        axis = output.ndim - 1 if layout.last else int(layout.batch)
        along = torch.arange(output.shape[axis]).reshape(
            [-1 if each == axis else 1 for each in range(output.ndim)]
        )
        return along.expand(output.shape), (output.shape[axis],)
    if address not in trace.map_outputs.get(address.layer, ()):
        raise no_cells_error(model, address.layer)
    maps = layout.maps(places if layout.order == WINDOWS or not layout.batch else places[0])
    cells = torch.arange(prod(maps.shape[1:])).reshape(maps.shape[1:])
    numbers = torch.full((output.numel(),), -1)
    numbers[maps.flatten()] = cells.expand(maps.shape).flatten()
    return numbers.reshape(output.shape), tuple(maps.shape[1:])


def direct_effects(
    model: Model,
    corrupted: ModelInput,
    target: AttributionTarget,
    layers: Sequence[_LayerParts],
    progress: Progress,
) -> tuple[dict[str, Tensor], str]:
    """Return Σ gradient · (clean − corrupted) over each part, float64 ``(parts,)``, by layer.

    And why there is none, where that is so: those numbers are NaN.

    `corrupted` is the input at whose activations the gradient is taken; `layers` holds the outputs
    for either image.
    """
    reporter = ProgressReporter(progress)
    asked = [str(at) for each in layers for at in each.clean]
    run = GradientPass(model, corrupted, target, asked, reporter.share)
    gradients: Mapping[str, Tensor | None] = {}
    note = ""
    try:
        gradients = run.run(corrupted.tensor)
    except ModelError as error:
        if reporter.was_ended_by(error):
            raise
        note = str(error)
    kept = {} if note else run.layer_outputs
    direct = {each.info.name: _effects(each, gradients, kept) for each in layers}
    unknown = [name for name, effects in direct.items() if effects.isnan().any()]
    if unknown and not note:
        note = say(
            "There is no estimate at {layer}: its gradient is not finite, it puts out several "
            "tensors, or it runs otherwise for the other image.",
            layer=unknown[0],
        )
    return direct, note


def _effects(
    layer: _LayerParts, gradients: Mapping[str, Tensor | None], kept: Mapping[str, Tensor]
) -> Tensor:
    """Return Σ gradient · (clean − corrupted) over each part of one layer."""
    effects = torch.zeros(layer.count, dtype=torch.float64)
    for at, numbers in layer.numbers.items():
        clean, corrupted = layer.clean[at], layer.corrupted.get(at)
        gradient = gradients.get(str(at))
        if str(at) not in kept or corrupted is None or corrupted.shape != clean.shape:
            effects += torch.nan
        elif gradient is not None:  # without one the target does not depend on it
            effect = (gradient * (clean - corrupted)).double().cpu()[numbers >= 0]
            effects.index_add_(0, numbers[numbers >= 0], effect)
    return effects


class PartPatching:
    """Passes over two images, and over the second with one part as it was for the first.

    Attributes:
        scores: of the clean image, float64 ``(classes,)``.
        before: of the corrupted image.
    """

    def __init__(
        self,
        model: Model,
        images: tuple[ModelInput, ModelInput],
        infos: Sequence[LayerInfo],
        by: str,
    ) -> None:
        """Run the clean image and the corrupted one, and number the layers' parts.

        Raises:
            ModelError: a layer lacks those parts, or there are too many.
        """
        trace = input_trace(model, images[0])
        kept, self.scores = _run(model, images[0], infos)
        own, self.before = _run(model, images[1], infos)
        self._model, self._corrupted = model, images[1]
        self._parts = [
            _LayerParts(model, trace, info, (kept[info.name], own[info.name]), by) for info in infos
        ]
        _check_work(model, trace, self._parts)
        self._total = 1 + sum(each.count for each in self._parts)

    def direct_effects(
        self, index: int, reporter: ProgressReporter
    ) -> tuple[dict[str, Tensor], str]:
        """Return the gradient's estimates of `changes`, and why they are NaN where they are."""
        gradients = progress_of_part(reporter, 0, 1, self._total)
        direct, note = direct_effects(
            self._model, self._corrupted, AttributionTarget(index), self._parts, gradients
        )
        return self._shaped(direct), note

    def changes(self, index: int, reporter: ProgressReporter) -> dict[str, Tensor]:
        """Return what patching each part does to a class's score, in the parts' shape, by layer."""
        done, changes = 1, {}
        for each in self._parts:
            within = ProgressReporter(progress_of_part(reporter, done, each.count, self._total))
            passes = _PatchedPasses(self._model, self._corrupted, each)
            after = passes.scores_with_each(self.before, within)
            changes[each.info.name] = after[:, index] - self.before[index]
            done += each.count
        return self._shaped(changes)

    def _shaped(self, found: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {each.info.name: found[each.info.name].reshape(each.shape) for each in self._parts}


class _PatchedPasses(PartChanges):
    """Runs passes with parts of one layer as they were for the clean image."""

    def __init__(self, model: Model, corrupted: ModelInput, parts: _LayerParts) -> None:
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


def _check_work(model: Model, trace: LayerTrace, parts: Sequence[_LayerParts]) -> None:
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


_Heads = Mapping[ActivationKey, Tensor]
"""What the heads put out in each call of a layer that attends, ``(N, heads, …)``."""


class HeadPatching:
    """Passes over two images, and over the second with one head as it was for the first.

    Attributes:
        scores: of the clean image, float64 ``(classes,)``.
        before: of the corrupted image.
    """

    def __init__(
        self, model: Model, images: tuple[ModelInput, ModelInput], groups: Sequence[Sequence[str]]
    ) -> None:
        """Run the clean image and the corrupted one, and keep what all heads in `groups` put out.

        Raises:
            ModelError: nothing in the network attends, or in other shapes for either image.
            SettingError: nothing attends in one of `groups`.
        """
        self._model, self._corrupted, self._groups = model, images[1].tensor, groups
        if not attending_layers(model, tuple(images[0].tensor.shape[1:])):
            raise no_attention_error(model)
        self._clean, self.scores = self._run(images[0].tensor)
        self._own, self.before = self._run(images[1].tensor)
        for at, heads in self._clean.items():
            other = self._own.get(at)
            if other is None or other.shape != heads.shape:
                raise ModelError(
                    say(
                        "The heads of {layer!r} put out {shape} for one image and {other} for "
                        "the other, so none can be patched. Name other layers.",
                        layer=at.layer,
                        shape=times(heads.shape),
                        other=say("nothing") if other is None else times(other.shape),
                    )
                )

    @property
    def counts(self) -> dict[str, int]:
        """Heads by layer, in order of execution."""
        return {at.layer: heads.shape[1] for at, heads in self._clean.items()}

    def changes(self, index: int, reporter: ProgressReporter) -> dict[str, Tensor]:
        """Return what patching each head does to a class's score, float64 ``(heads,)`` by layer."""
        done, total = 0, sum(self.counts.values())
        changes = {}
        for layer, count in self.counts.items():
            found = torch.zeros(count, dtype=torch.float64)
            for head in range(count):
                found[head] = self._patched_scores(layer, head)[index] - self.before[index]
                done += 1
                reporter.share(done / total)
            changes[layer] = found
        return changes

    def direct_effects(
        self, index: int, _reporter: ProgressReporter
    ) -> tuple[dict[str, Tensor], str]:
        """Return the gradient's estimates of `changes`, and why they are NaN where they are."""
        try:
            gradients = self._gradients(index)
        except ModelError as error:
            return {
                layer: torch.full((count,), torch.nan, dtype=torch.float64)
                for layer, count in self.counts.items()
            }, str(error)
        effects = {layer: torch.zeros(count).double() for layer, count in self.counts.items()}
        for at, gradient in gradients.items():
            if gradient is not None:  # without one the score does not depend on it
                effect = gradient.cpu() * (self._clean[at] - self._own[at])
                effects[at.layer] += effect.double().transpose(0, 1).flatten(1).sum(1)
        return effects, ""

    def _run(self, images: Tensor) -> tuple[_Heads, Tensor]:
        kept: dict[ActivationKey, Tensor] = {}

        def keep(at: ActivationKey, heads: Tensor) -> None:
            kept[at] = heads.cpu().clone()

        return kept, self._scores(images, self._groups, keep)

    def _patched_scores(self, layer: str, head: int) -> Tensor:
        def patch(at: ActivationKey, heads: Tensor) -> Tensor | None:
            if at.layer != layer:
                return None
            patched = heads.clone()
            patched[:, head] = self._clean[at][:, head].to(heads.device, heads.dtype)
            return patched

        return self._scores(self._corrupted, [[layer]], patch)

    def _scores(
        self, images: Tensor, groups: Sequence[Sequence[str]], change: HeadChange
    ) -> Tensor:
        """Run a pass with heads read or changed; return its scores, float64 ``(classes,)``."""
        with (
            private_replica(self._model) as replica,
            HeadOutputs(replica, groups, change).watching(),
        ):
            scores = class_scores(self._model, replica, images).values
        return scores[0].cpu().double()

    def _gradients(self, index: int) -> dict[ActivationKey, Tensor | None]:
        kept: dict[ActivationKey, Tensor] = {}
        with differentiable(self._model) as network:
            images = self._corrupted.to(*device_and_dtype(network), copy=True).requires_grad_()
            with HeadOutputs(network, self._groups, kept.__setitem__).watching():
                score = class_scores(self._model, network, images).values[0, index]
            found = backward_pass(self._model, score, list(kept.values()))
        return dict(zip(kept, found, strict=True))
