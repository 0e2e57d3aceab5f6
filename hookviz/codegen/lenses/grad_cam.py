"""Grad-CAM, Grad-CAM++, LayerCAM, Eigen-CAM and Score-CAM."""

from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import HOLD, LensCode, constants, in_order, target


def code(recipe: LensRecipe) -> LensCode:
    """The layer's maps, weighed by the chosen method and added up."""
    method = str(recipe.chosen["method"])
    with_gradient = method in _WITH_GRADIENT
    lines = [constants(recipe, layer="whose channels are weighed"), target(recipe)]
    if method == "Score-CAM":
        lines += [constants(recipe, top="channels that are tried, the strongest ones")]
    lines += [HOLD, _GRADIENT if with_gradient else _VALUES]
    lines += [_WITH_GRADIENT[method] if with_gradient else _WITHOUT[method], _POSITIVE]
    values = {"map": "positive", "signed": "signed", "score": "score.item()"}
    return in_order(*lines), values | ({} if method == "LayerCAM" else {"weights": "weights"})


_GRADIENT = """\
batch.requires_grad_()  # so that there are gradients in a frozen network, too
score = model(batch)[0, TARGET]  # before the softmax
handle.remove()
(gradient,) = torch.autograd.grad(score, outputs[0])  # of the layer's first call
activation, gradient = outputs[0][0].detach().numpy(), gradient[0].numpy()  # (C, H, W) both
"""
_VALUES = """\
with torch.no_grad():  # this method needs no gradients
    score = model(batch)[0, TARGET]  # before the softmax
handle.remove()
activation = outputs[0][0].numpy()  # of the layer's first call, (C, H, W)
"""
_WITH_GRADIENT = {
    "Grad-CAM": """\
# A channel's weight is the mean of its gradient (Selvaraju et al., 2017).
weights = gradient.mean((1, 2))
signed = np.einsum("c,chw->hw", weights, activation)""",
    "Grad-CAM++": """\
# A channel's weight is a weighted sum of its positive gradients (Chattopadhay et al., 2018).
squares, total = gradient**2, activation.sum((1, 2), keepdims=True)
shares = squares / (2 * squares + total * squares * gradient + 1e-6)
weights = (np.maximum(gradient, 0) * shares).sum((1, 2))
signed = np.einsum("c,chw->hw", weights, activation)""",
    "LayerCAM": """\
# Every cell has a weight of its own: its gradient, where that is positive (Jiang et al., 2021).
signed = np.einsum("chw,chw->hw", np.maximum(gradient, 0), activation)""",
}
_WITHOUT = {
    "Eigen-CAM": """\
# The cells, each with C numbers, along the direction in which they differ most (Muhammad and
# Yeasin, 2020). That has no sign: here the cell that is farthest from zero is positive.
cells = np.nan_to_num(activation).reshape(len(activation), -1).T
cells = cells - cells.mean(0)
direction = np.linalg.svd(cells, full_matrices=False)[2][0]
along = cells @ direction
sign = -1 if -along.min() > along.max() else 1
weights, signed = sign * direction, (sign * along).reshape(activation.shape[1:])""",
    "Score-CAM": """\
# Each channel, enlarged and brought to 0…1, is a mask on the input. The weights are the softmax of
# the class's scores for what is left of the image (Wang et al., 2020).
strength = np.abs(activation).mean((1, 2))
channels = np.sort(np.argsort(-strength, kind="stable")[:TOP])
scores = []
for channel in channels:
    mask = torch.from_numpy(activation[channel])[None, None]
    mask = nn.functional.interpolate(mask, batch.shape[2:], mode="bilinear", align_corners=True)
    mask = (mask - mask.min()) / (mask.max() - mask.min() + 1e-8)
    with torch.no_grad():
        scores.append(model(batch * mask)[0, TARGET])
weights = np.zeros(len(activation), np.float32)  # of the others
weights[channels] = torch.stack(scores).softmax(0).numpy()
signed = np.einsum("c,chw->hw", weights, activation)""",
}
_POSITIVE = """\
positive = np.maximum(signed, 0)  # what speaks for the class"""
