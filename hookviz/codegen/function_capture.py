"""Write the lines of a script that keep what a function in a network's code puts out."""

from hookviz.codegen.wording import quoted
from hookviz.hooking.function_calls import taken_apart


def function_capture(name: str, part: str) -> str:
    """Write ``outputs``, what each call of the function put out.

    Args:
        name: of the function, as `hookviz.list_layers` has it.
        part: lines that take one tensor of several out of ``output``; empty where it is one.
    """
    function, place = taken_apart(name)
    return _KEEP.format(function=quoted(function), place=quoted(place), part=part)


_KEEP = """\
# No hook sees what a network's code calls as a function: a mode sees it, and hooks tell where the
# pass is.
outputs, place = [], []


class KeepFunction(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        output = func(*args, **(kwargs or {{}}))
        called = func.__name__.strip("_").removesuffix("_with_indices")
        if place[-1:] == [{place}] and called == {function}:
{part}            outputs.append(output.clone())
        return output


def note_places(name, module):
    module.register_forward_pre_hook(lambda module, inputs: place.append("in " + name))
    module.register_forward_hook(lambda module, inputs, output: place.append("after " + name))


for name, module in model.named_modules():
    note_places(name, module)
with torch.no_grad(), KeepFunction():  # no training, so nothing is kept for gradients
    model(batch)
"""
