"""Estimate by one backward pass what patching each part of a network would do.

Attribution patching (Nanda, "Attribution Patching: Activation Patching At Industrial Scale", 2023):
the gradient of the target at the corrupted image's activation, times what patching changes there.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from hookviz.errors import ModelError
from hookviz.explaining.attribution_target import AttributionTarget
from hookviz.explaining.gradient_pass import GradientPass
from hookviz.explaining.layer_parts import LayerParts
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import say
from hookviz.types import Model, ModelInput, Progress


def direct_effects(
    model: Model,
    corrupted: ModelInput,
    target: AttributionTarget,
    layers: Sequence[LayerParts],
    progress: Progress,
) -> tuple[dict[str, Tensor], str]:
    """Return Σ gradient · (clean − corrupted) over each part, float64 ``(parts,)``, by layer.

    And why there is none, where that is so: those numbers are NaN.

    Args:
        model: the model.
        corrupted: the input at whose activations the gradient is taken.
        target: whose gradient.
        layers: with what they put out for either image.
        progress: called with the share done; what it raises ends the run.
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
    layer: LayerParts, gradients: Mapping[str, Tensor | None], kept: Mapping[str, Tensor]
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
