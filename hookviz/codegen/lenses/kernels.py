"""Kernels: a conv layer's weights, their norms, and which point nearly the same way."""

from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import LensCode, constants, in_order


def code(recipe: LensRecipe) -> LensCode:
    """The weights as they are used, output channels first."""
    one_input = recipe.chosen["show"] == "one input"
    asked = {"layer": ""} | ({"channel": "the input channel that is shown"} if one_input else {})
    asked |= {"threshold": "the smallest |cosine| of near-duplicates"}
    how = _ONE_INPUT if one_input else _NORM
    return in_order(constants(recipe, **asked), _KERNELS, how, _TWINS), {
        name: name for name in ("kernels", "shown", "norms", "pairs", "cosines")
    }


_KERNELS = """\
layer = model.get_submodule(LAYER)
weight = layer.weight.detach()
if layer.transposed:  # stored input channel first: within each group, outputs first
    grouped = weight.reshape(layer.groups, -1, *weight.shape[1:])
    weight = grouped.transpose(1, 2).flatten(0, 1)
# (output channels, inputs per kernel, taps down, taps across)
kernels = weight.reshape(*weight.shape[:2], -1, weight.shape[-1]).numpy()
outputs, inputs, tall, wide = kernels.shape
if tall * wide == 1 and inputs > 1:  # no pictures, but a matrix, its longer side across
    matrix = kernels.reshape(1, outputs, inputs)
    shown = matrix.swapaxes(1, 2) if outputs > inputs else matrix
else:"""
_ONE_INPUT = "    shown = kernels[:, CHANNEL]\n"
_NORM = """\
    # At each tap the norm over the input channels.
    shown = np.sqrt(np.square(kernels.astype(np.float64)).sum(1)).astype(np.float32)
"""
_TWINS = """\
# The cosine of the angle between two kernels: 1 for the same at another strength, -1 the opposite.
flat = kernels.reshape(outputs, -1).astype(np.float64)
norms = np.sqrt(np.square(flat).sum(1))
live = np.flatnonzero(norms > 0) if flat.shape[1] > 1 else np.empty(0, int)
units = flat[live] / norms[live, None]
every = np.clip(units @ units.T, -1, 1)
rows, columns = np.triu_indices(len(live), 1)  # each pair once
sizes = np.abs(every[rows, columns])
closest = np.argsort(-sizes, kind="stable")[: max(1, min(30, (sizes >= THRESHOLD).sum()))]
rows, columns = rows[closest], columns[closest]
pairs, cosines = np.stack([live[rows], live[columns]], 1), every[rows, columns]"""
