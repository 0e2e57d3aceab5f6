"""Summary: layers with their weights and multiply-adds."""

from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import LensCode, in_order, layers


def code(recipe: LensRecipe) -> LensCode:
    """Every layer that runs, what it has learned and how much it multiplies."""
    shown = _CONVS if recipe.chosen["layers"] == "convolutions" else "shown = list(work)"
    return in_order(layers(recipe), _WORK, shown, _PRINT), {
        "parameters": "[parameters[name] for name in shown]",
        "multiply_adds": "[work[name] for name in shown]",
    }


_WORK = '''work = {}  # by layer, in order of execution


def multiply_adds(module, image, output):
    """A kernel is used at every cell, a matrix once for each vector, and a bias once per output."""
    outputs = output[0].numel()
    if isinstance(module, nn.modules.conv._ConvNd):
        cells = (image if module.transposed else output)[0, 0].numel()
        kernel = module.in_channels * module.out_channels // module.groups
        for taps in module.kernel_size:
            kernel *= taps
        return kernel * cells + outputs * (module.bias is not None)
    if isinstance(module, nn.Linear):
        return outputs * module.in_features + outputs * (module.bias is not None)
    return 0


def count_as(name):
    def count(module, inputs, output):
        is_counted = isinstance(module, (nn.modules.conv._ConvNd, nn.Linear))
        added = multiply_adds(module, inputs[0], output) if is_counted else 0
        work[name] = work.get(name, 0) + added

    return count


for name, module in layers.items():
    module.register_forward_hook(count_as(name))
with torch.no_grad():
    model(batch)
# A number belongs to the innermost of the layers that it lies in.
parameters = dict.fromkeys(work, 0)
for name, parameter in model.named_parameters(remove_duplicate=False):
    owners = [layer for layer in work if name.startswith(f"{layer}.")]
    if owners:
        parameters[max(owners, key=len)] += parameter.numel()'''
_CONVS = """\
shown = [name for name in work if isinstance(layers[name], nn.modules.conv._ConvNd)]"""
_PRINT = """\
for name in shown:
    print(f"{name:32} {parameters[name]:12,} weights {work[name]:14,} multiply-adds")"""
