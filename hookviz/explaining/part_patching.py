"""Patch the whole of a layer's output, its channels or its cells, for `hookviz.patch`."""

from collections.abc import Mapping, Sequence
from itertools import islice

import torch
from torch import Tensor

from hookviz.capturing.layer_trace import LayerTrace, input_trace
from hookviz.errors import ModelError
from hookviz.explaining.attribution_patching import direct_effects
from hookviz.explaining.attribution_target import AttributionTarget
from hookviz.explaining.batched_passes import progress_of_part
from hookviz.explaining.layer_parts import LayerParts
from hookviz.explaining.part_changes import MAX_WORK, PartChanges, work_behind
from hookviz.explaining.scoring import class_scores
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import ProgressReporter, private_replica
from hookviz.language.saying import say
from hookviz.types import ActivationKey, LayerInfo, Model, ModelInput
from hookviz.wording import number, times


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
            ModelError: a layer has no such parts, or there are too many.
        """
        trace = input_trace(model, images[0])
        kept, self.scores = _run(model, images[0], infos)
        own, self.before = _run(model, images[1], infos)
        self._model, self._corrupted = model, images[1]
        self._parts = [
            LayerParts(model, trace, info, (kept[info.name], own[info.name]), by) for info in infos
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
