"""Input and output: what one call of a layer takes in and puts out."""

from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import LensCode, constants, in_order


def code(recipe: LensRecipe) -> LensCode:
    """One call of the layer, its tensors copied at that moment."""
    call = {"call": "counted from 0"} if recipe.chosen["call"] else {}
    which = "CALL" if call else "0"
    lines = constants(recipe, layer="", **call)
    if set(recipe.values) == {"input", "output"}:
        return in_order(lines, _ONE_TENSOR), {
            "input": f"taken_in[{which}].float().numpy()",
            "output": f"put_out[{which}].float().numpy()",
        }
    several = sum(name.partition("_")[0] == "input" for name in recipe.values) > 1
    code = _TENSORS.format(several=_ALL_PATHS if several else _REST_OF_PATH, call=which)
    return in_order(lines, code), {
        name: f"found[{name!r}]".replace("'", '"') for name in recipe.values
    }


_ONE_TENSOR = """\
taken_in, put_out = [], []


def before(module, inputs):
    taken_in.append(inputs[0].clone())  # a copy: the layer may work in place


def after(module, inputs, output):
    put_out.append(output.clone())  # so may the next one


layer = model.get_submodule(LAYER)
layer.register_forward_pre_hook(before)
layer.register_forward_hook(after)
with torch.no_grad():
    model(batch)
# Of the only image, with its batch: (1, channels, height, width)."""
_TENSORS = '''

def tensors_in(value, path=()):
    """Copies of all tensors inside tuples, lists and dicts, by where they are."""
    if isinstance(value, torch.Tensor):
        return {{path: value.clone()}}
    if isinstance(value, dict):
        items = value.items()
    else:
        items = enumerate(value) if isinstance(value, (tuple, list)) else ()
    found = {{}}
    for key, part in items:
        found |= tensors_in(part, (*path, str(key)))
    return found


taken_in, put_out = [], []


def before(module, inputs, named):
    taken_in.append(tensors_in((*inputs, *named.values())))  # now: it may work in place


def after(module, inputs, output):
    put_out.append(tensors_in(output))


layer = model.get_submodule(LAYER)
layer.register_forward_pre_hook(before, with_kwargs=True)
layer.register_forward_hook(after)
with torch.no_grad():
    model(batch)
{several}
for path, tensor in put_out[{call}].items():
    found["_".join(("output", *path))] = tensor.float().numpy()'''
_ALL_PATHS = """\
found = {{}}
for path, tensor in taken_in[{call}].items():
    found["_".join(("input", *path))] = tensor.float().numpy()"""
_REST_OF_PATH = """\
found = {{}}
for path, tensor in taken_in[{call}].items():  # of one argument
    found["_".join(("input", *path[1:]))] = tensor.float().numpy()"""
