"""Saliency: gradient, input × gradient, SmoothGrad, guided backpropagation."""

from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import GRADIENT_AT, LensCode, in_order, value_of


def code(recipe: LensRecipe) -> LensCode:
    """The gradient at the input, and how the chosen method shows it."""
    method = str(recipe.chosen["method"])
    lines = [
        *value_of(recipe),
        GRADIENT_AT,
        _METHODS[method].format(**recipe.chosen),
        _MAP[method != _SIGNED],
    ]
    return in_order(*lines), {
        "map": "shown",
        "attribution": "attribution",
        "value": "value",
    }


_SIGNED = "input × gradient"
_METHODS = {
    "gradient": """
attribution, value = gradient_at(batch)  # (C, H, W)""",
    _SIGNED: """
# To first order, what each number of the input adds to the value (Shrikumar et al., 2016).
gradient, value = gradient_at(batch)
attribution = gradient * batch[0].numpy()  # (C, H, W)""",
    "SmoothGrad": """
# The mean gradient over noisy copies of the input (Smilkov et al., 2017).
SAMPLES = {samples}
NOISE = {noise}  # its deviation, as a share of the input's range
noise = torch.Generator().manual_seed(0)  # the same noise every time
spread = NOISE * (batch.max() - batch.min()).item()
total = np.zeros(batch.shape[1:])
for _ in range(SAMPLES):
    total += gradient_at(batch + spread * torch.randn(batch.shape, generator=noise))[0]
attribution = (total / SAMPLES).astype(np.float32)  # (C, H, W)
value = gradient_at(batch)[1]""",
    "guided backpropagation": """
class Guide(TorchFunctionMode):
    # Backwards through every ReLU, only what is positive goes on (Springenberg et al., 2015). Hooks
    # on modules would miss the ReLUs that a network calls as functions.
    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {{}}
        output = function(*args, **kwargs)
        name = function.__name__.strip("_")
        relu6 = name == "hardtanh" and kwargs.get("min_val") == 0  # as ReLU6 calls it
        if (relu6 or name in ("relu", "relu6")) and output.requires_grad:
            output.register_hook(lambda gradient: gradient.clamp(min=0))
        return output


with Guide():
    attribution, value = gradient_at(batch)  # (C, H, W)""",
}
_MAP = {
    True: "shown = np.abs(attribution).max(0)  # (H, W)",
    False: "shown = attribution.sum(0)  # (H, W)",
}
