"""Channels that matter: each channel of a layer switched off by itself."""

from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import SCORES_WITHOUT, LensCode, constants, in_order, target


def code(recipe: LensRecipe) -> LensCode:
    """What the class's score and probability change by without each channel."""
    lines = [
        constants(recipe, layer="whose channels are switched off"),
        target(recipe),
        SCORES_WITHOUT,
    ]
    lines.append(_CHANGES)
    return in_order(*lines), {
        "logit_change": "np.array(logit_change)",
        "probability_change": "np.array(probability_change)",
        "logit": "before[TARGET].item()",
        "probability": "before.softmax(0)[TARGET].item()",
    }


_CHANGES = """\
logit_change, probability_change = [], []
layer = model.get_submodule(LAYER)
for channel in range(layer.out_channels):  # a pass for each
    after = scores_without(layer, channel)
    logit_change.append((after - before)[TARGET].item())
    probability_change.append((after.softmax(0) - before.softmax(0))[TARGET].item())"""
