"""Step by step: every call of a layer, where its input came from, its time and memory."""

from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import TENSORS_IN, LensCode, in_order, innermost


def code(recipe: LensRecipe) -> LensCode:
    """The calls in order, followed in one pass and timed in three more."""
    return in_order(innermost(recipe), TENSORS_IN, _FOLLOW, _TIME), {
        "edges": "np.array(edges, np.int64).reshape(-1, 2)",
        "bytes": "[step['bytes'] for step in steps]".replace("'", '"'),
        "seconds": "seconds",
    }


_FOLLOW = """
steps = []  # the calls of layers, numbered from 1; 0 is the network's input
sources = {}  # from a tensor's id to the numbers of the calls that it comes from
alive = []  # every tensor, so that no id is used twice


def know(tensor, numbers):
    alive.append(tensor)
    sources[id(tensor)] = numbers


def sources_of(tensors):
    return frozenset().union(*(sources.get(id(tensor), ()) for tensor in tensors))


class Follow(TorchFunctionMode):
    # Sees every torch function, also those between layers, such as additions: what it puts out
    # comes from all that its arguments come from.
    def __torch_function__(self, function, types, args=(), kwargs=None):
        operands = tensors_in((args, kwargs or {}))
        versions = [tensor._version for tensor in operands]
        output = function(*args, **(kwargs or {}))
        numbers = sources_of(operands)
        for tensor, version in zip(operands, versions, strict=True):
            if tensor._version != version:  # it was written into
                know(tensor, numbers)
        for tensor in tensors_in(output):
            if all(tensor is not operand for operand in operands):
                know(tensor, numbers)
        return output


def before(module, inputs, named):
    given = tensors_in((inputs, named))
    versions = [tensor._version for tensor in given]
    steps.append({"sources": sources_of(given), "given": given, "versions": versions})


def after(module, inputs, output):
    step = steps[-1]
    given, versions = step.pop("given"), step.pop("versions")
    step["bytes"] = sum(tensor.nbytes for tensor in tensors_in(output))
    untouched = [tensor._version for tensor in given] == versions
    if untouched and any(output is tensor for tensor in given):
        output = output.detach()  # of an Identity: an object of its own, to be told from the input
    for tensor in tensors_in(output):
        know(tensor, frozenset([len(steps)]))
    return output


handles = [each.register_forward_pre_hook(before, with_kwargs=True) for each in layers.values()]
handles += [each.register_forward_hook(after) for each in layers.values()]
know(batch, frozenset([0]))
with torch.no_grad(), Follow():
    model(batch)
for handle in handles:
    handle.remove()
edges = [(source, to) for to, step in enumerate(steps, 1) for source in sorted(step["sources"])]
"""
_TIME = """
# The time of each call, from just before its forward to just after: the median of three passes.
started, times = [], []


def start(module, inputs):
    started.append(time.perf_counter())


def stop(module, inputs, output):
    times.append(time.perf_counter() - started.pop())


for module in layers.values():
    module.register_forward_pre_hook(start)
    module.register_forward_hook(stop)
with torch.no_grad():
    for _ in range(3):
        model(batch)
seconds = np.median(np.reshape(times, (3, -1)), axis=0)"""
