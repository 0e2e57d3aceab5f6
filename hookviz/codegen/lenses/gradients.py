"""Gradients at a layer."""

from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import HOLD, LensCode, constants, in_order, target


def code(recipe: LensRecipe) -> LensCode:
    """The gradient of a class's score, or of another layer's channel, at a layer's output."""
    layer = constants(recipe, layer="where the gradient is taken")
    if recipe.chosen["of"] is None:
        lines = [layer, target(recipe), HOLD, _OF_CLASS]
    else:
        asked = {"of": "the layer asked about", "channel": "of that layer"}
        cell = recipe.chosen["row"] >= 0
        asked |= {"row": "of the channel", "column": "of the channel"} if cell else {}
        value = "[0, CHANNEL, ROW, COLUMN]" if cell else "[0, CHANNEL].mean()"
        lines = [layer, constants(recipe, **asked), _OF_CHANNEL, f"value = outputs[OF]{value}", _AT]
    return in_order(*lines, _NUMBERS), {
        "gradient": "gradient",
        "value": "value.item()",
        "norm": "norm",
        "max_per_channel": "np.abs(gradient).max((1, 2))",
    }


_OF_CLASS = """\
batch.requires_grad_()  # so that there are gradients in a frozen network, too
value = model(batch)[0, TARGET]  # the score, before the softmax
handle.remove()
(gradient,) = torch.autograd.grad(value, outputs[0])  # at what its first call put out"""
_OF_CHANNEL = """\
# A forward hook sees what a layer puts out. What it returns takes the place of that: the network
# goes on with a copy, since an in-place ReLU that follows would write over the original.
outputs = {}


def hold_as(name):
    def hold(module, inputs, output):
        outputs.setdefault(name, output)  # of its first call
        return output.clone()

    return hold


for name in {LAYER, OF}:
    model.get_submodule(name).register_forward_hook(hold_as(name))
batch.requires_grad_()  # so that there are gradients in a frozen network, too
model(batch)"""
_AT = "(gradient,) = torch.autograd.grad(value, outputs[LAYER])"
_NUMBERS = """\
gradient = gradient[0].numpy()  # (C, H, W)
norm = np.sqrt(np.square(gradient, dtype=np.float64).sum())"""
