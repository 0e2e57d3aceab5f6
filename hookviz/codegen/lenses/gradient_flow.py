"""Gradient flow: the gradient that reaches each layer in one training step, and clipping."""

from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import LensCode, constants, in_order, target


def code(recipe: LensRecipe) -> LensCode:
    """The gradients of the weights of every conv and linear layer."""
    clipping = recipe.chosen["clipping"]
    lines = [target(recipe), _GRADIENTS]
    names = ["norm", "largest", "zeros", "strength", "total_norm"]
    if clipping != "none" and recipe.chosen.get("at"):
        asked = {"at": "whose output's gradient is clipped", "limit": "of that gradient"}
        lines += [constants(recipe, **asked), _AT.format(clipped=_CLIPPED_AT[clipping]), _CLIPPED]
        names += ["norm_clipped", "largest_clipped", "changed", "norm_at", "norm_at_clipped"]
    elif clipping != "none":
        lines += [constants(recipe, limit="of the gradients"), _CLIP[clipping], _CLIPPED]
        names += ["norm_clipped", "largest_clipped"]
    return in_order(*lines), {name: name for name in names} | {"loss": "loss.item()"}


_GRADIENTS = """
layers = []  # with weights, in order of execution


def note(module, inputs, output):
    if module not in layers:
        layers.append(module)


for module in model.modules():
    if isinstance(module, (nn.modules.conv._ConvNd, nn.Linear)):
        module.register_forward_hook(note)
# One training step on one image, in eval mode: batch norm uses its stored averages.
model.requires_grad_()  # whatever was frozen
loss = nn.functional.cross_entropy(model(batch), torch.tensor([TARGET]))
loss.backward()


def norm_of(tensor):
    return torch.linalg.vector_norm(tensor.detach(), dtype=torch.float64).item()


weights = [each.weight for each in layers if isinstance(each.weight, nn.Parameter)]
weights = [weight for weight in weights if weight.grad is not None]
norm = np.array([norm_of(weight.grad) for weight in weights])
largest = np.array([weight.grad.abs().max().item() for weight in weights])
zeros = np.array([(weight.grad == 0).float().mean().item() for weight in weights])
# The share of the weights by which a step with learning rate 1 would move them.
strength = norm / np.array([norm_of(weight) for weight in weights])
# Of all parameters together, biases and norms included, as clipping by norm takes it.
gradients = [each.grad for each in model.parameters() if each.grad is not None]
total_norm = np.linalg.norm([norm_of(gradient) for gradient in gradients])"""
_CLIP = {
    "by value": "nn.utils.clip_grad_value_(model.parameters(), LIMIT)",
    "by norm": "nn.utils.clip_grad_norm_(model.parameters(), LIMIT)",
}
_CLIPPED = """\
norm_clipped = np.array([norm_of(weight.grad) for weight in weights])
largest_clipped = np.array([weight.grad.abs().max().item() for weight in weights])"""
_CLIPPED_AT = {
    "by value": "gradient.clamp(-LIMIT, LIMIT)",
    "by norm": "gradient * min(1.0, LIMIT / (norm_of(gradient) + 1e-6))",
}
_AT = """\
came, went_on = [], []  # norms of the gradient at the layer


def clip(gradient):
    clipped = {clipped}
    came.append(norm_of(gradient))
    went_on.append(norm_of(clipped))
    return clipped  # what goes on to the layers before


def clip_at(module, inputs, output):
    output.register_hook(clip)
    return output.clone()  # an in-place ReLU that follows would write over the original


unclipped = [weight.grad.clone() for weight in weights]
model.zero_grad()
handle = model.get_submodule(AT).register_forward_hook(clip_at)
nn.functional.cross_entropy(model(batch), torch.tensor([TARGET])).backward()
handle.remove()
norm_at, norm_at_clipped = np.linalg.norm(came), np.linalg.norm(went_on)
# By more than rounding.
apart = [norm_of(w.grad - before) for w, before in zip(weights, unclipped, strict=True)]
changed = np.array(apart) > 1e-5 * norm"""
