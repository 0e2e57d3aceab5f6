"""Effective receptive field: the mean |gradient| of a cell over images."""

from hookviz.capturing.features import named
from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import LensCode, batches, constants, file_of, in_order


def code(recipe: LensRecipe) -> LensCode:
    """A pass there and back for each image."""
    chosen = recipe.chosen
    asked = {"layer": "whose cell it is"} | ({"channel": ""} if chosen["channel"] >= 0 else {})
    asked |= {"row": "", "column": ""} if chosen["row"] >= 0 else {}
    files = [file_of(name) for name in named(chosen["images"])][: chosen["count"]]
    inputs = batches(files if chosen["count"] > 1 else ())
    part = "maps[0, CHANNEL]" if chosen["channel"] >= 0 else "maps.mean(1)[0]  # over all channels"
    middle = "" if chosen["row"] >= 0 else _MIDDLE
    lines = in_order(
        constants(recipe, **asked, count="images at most"),
        _GRADIENT_AT.format(part=part, middle=middle),
        inputs,
        _MEAN,
    )
    return lines, {
        "map": "mean",
        "pixels": "pixels",
        "cell": "np.array(cell)",
        "images": "len(used)",
    }


_MIDDLE = """
    ROW, COLUMN = maps.shape[2] // 2, maps.shape[3] // 2"""
_GRADIENT_AT = '''

def gradient_at(images):
    """The gradient at the input of one cell of what the layer puts out, and which cell it is."""
    outputs = []

    def hold(module, inputs, output):
        outputs.append(output)
        return output.clone()  # an in-place ReLU that follows would write over the original

    handle = model.get_submodule(LAYER).register_forward_hook(hold)
    images = images.clone().requires_grad_()
    model(images)
    handle.remove()
    maps = outputs[0]{middle}
    channel = {part}
    (gradient,) = torch.autograd.grad(channel[ROW, COLUMN], images)
    return gradient[0].numpy(), (ROW, COLUMN)

'''
_MEAN = """\
mean = np.zeros(batch.shape[2:])
used = list(batches.values())[:COUNT]
for each in used:
    gradient, cell = gradient_at(each)
    mean += np.abs(gradient).sum(0, dtype=np.float64) / len(used)  # over the input's channels
# The fewest pixels that hold 95 % of it. (Which ones the cell could see at most, HookViz follows
# through the network's windows.)
filled = np.cumsum(np.sort(mean, axis=None)[::-1])
pixels = np.searchsorted(filled, 0.95 * filled[-1]) + 1 if filled[-1] else 0"""
