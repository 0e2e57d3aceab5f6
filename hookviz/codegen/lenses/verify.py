"""Computed again: every layer once more from the input that it was given."""

from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import TENSORS_IN, LensCode, in_order, layers


def code(recipe: LensRecipe) -> LensCode:
    """Every layer's output against the same layer called again, and against double precision."""
    names = ("difference", "relative", "compared", "agrees")
    lines = (layers(recipe), _AGAIN, TENSORS_IN, _CHECK)
    return in_order(*lines), {
        name: f'[check["{name}"] for check in checks.values()]' for name in names
    }


_AGAIN = """\
for name, module in model.named_modules():
    if isinstance(module, (nn.modules.conv._ConvNd, nn.Linear)):
        layers[name] = module
# Copies of the network without hooks compute again, the second in double precision.
second, double = copy.deepcopy(model), copy.deepcopy(model).double()"""
_CHECK = '''
def apart(ours, theirs):
    """|ours - theirs|: 0 for equal or both NaN, infinite where one alone is NaN."""
    same = (ours == theirs) | (ours.isnan() & theirs.isnan())
    distance = (ours.double() - theirs.double()).abs()
    return distance.nan_to_num(np.inf, np.inf).masked_fill(same, 0)


def is_close(check, module, exact, image, output):
    """Whether a sum of products is off by no more than single precision may be."""
    distance = apart(output, exact)
    largest = exact.abs().nan_to_num(0, 0, 0).max().item() or 1.0
    check["relative"] = np.fmax(check["relative"], distance.max().item() / largest)
    # Σ |w · x| + |b| is at most this (Higham, Accuracy and Stability of Numerical Algorithms, 3.1).
    bound = module.weight.double().abs().flatten(1).sum(1) * image.abs().max()
    if module.bias is not None:
        bound += module.bias.double().abs()
    bound = bound[:, None, None] if isinstance(module, nn.Conv2d) else bound
    return bool((distance <= (1e-5 * bound).nan_to_num(np.inf)).all())


checks = {}  # by layer, in order of execution
names = {module: name for name, module in layers.items()}
given = {}


def before(module, inputs, named):
    given[module] = copy.deepcopy((inputs, named))  # an in-place layer writes over them


def after(module, inputs, output):
    inputs, named = given.pop(module)
    name = names[module]
    start = {"difference": 0.0, "relative": np.nan, "compared": 0, "agrees": True}
    check = checks.setdefault(name, start)
    again = second.get_submodule(name)(*copy.deepcopy(inputs), **copy.deepcopy(named))
    for ours, theirs in zip(tensors_in(output), tensors_in(again), strict=True):
        difference = apart(ours, theirs).max().item()
        check["compared"] += ours.numel()
        check["difference"] = max(check["difference"], difference)
        check["agrees"] &= difference <= 1e-5 * ours.abs().max().item()
    if isinstance(module, (nn.Conv2d, nn.Linear)):
        exact = double.get_submodule(name)(inputs[0].double())
        check["agrees"] &= is_close(check, module, exact, inputs[0], output)


for module in set(layers.values()):
    module.register_forward_pre_hook(before, with_kwargs=True)
    module.register_forward_hook(after)
with torch.no_grad():
    model(batch)'''
