"""Lines of code that the scripts of several lenses have in common."""

from collections.abc import Iterable

from hookviz.codegen.lens_facts import LensFacts
from hookviz.codegen.wording import quoted
from hookviz.explaining.baselines import BLUR, LEVELS, REACH
from hookviz.images.samples import samples


def in_order(*chunks: str) -> str:
    """Chunks of code one after the other, with two empty lines around functions and classes."""
    code = ""
    for chunk in (chunk.strip("\n") for chunk in chunks if chunk):
        last = [line for line in code.splitlines() if line[:1].strip()][-1:]
        first = next(line for line in chunk.splitlines() if not line.startswith("#"))
        apart = any(line.startswith(("def ", "class ")) for line in (*last, first))
        apart &= first[0] != " "  # else it goes on with the function before
        code += ("\n\n\n" if apart else "\n") * bool(code) + chunk
    return code


def constant(facts: LensFacts, name: str, comment: str = "") -> str:
    """A parameter of the lens as a constant of the script, such as ``LAYER = "conv1"``."""
    value = facts.chosen[name]
    written = quoted(value) if isinstance(value, str) else repr(value)
    return f"{name.upper()} = {written}" + (f"  # {comment}" if comment else "")


def constants(facts: LensFacts, **comments: str) -> str:
    """Several of them, a line each, by the parameters' names."""
    return "\n".join(constant(facts, name, comment) for name, comment in comments.items())


def target(facts: LensFacts) -> str:
    """The class as a constant, with what it is called."""
    number, names = facts.chosen["target"], facts.categories
    label = names[number] if number < len(names) else "a class without a name"
    return constant(facts, "target", f"the class: {one_line(label)}")


def one_line(text: str) -> str:
    """A label that can stand in a comment."""
    return text if text.isprintable() else ascii(text)


def layers(facts: LensFacts) -> str:
    """Makes ``layers``, the modules that a person would call layers, by their names."""
    every = frozenset(facts.structure.layers)
    if every == facts.structure.without_parts:
        return _WITHOUT_PARTS
    if every == facts.structure.without_parts | facts.structure.with_weights:
        return _WITH_WEIGHTS
    return named_layers(facts.structure.layers)


def innermost(facts: LensFacts) -> str:
    """Makes ``layers``, those of them that have none of the others inside."""
    names = [
        name
        for name in facts.structure.layers
        if not any(other.startswith(f"{name}.") for other in facts.structure.layers)
    ]
    return (
        _WITHOUT_PARTS if frozenset(names) == facts.structure.without_parts else named_layers(names)
    )


def named_layers(names: Iterable[str]) -> str:
    """Makes ``layers`` of these names."""
    listed = "\n".join(f"    {quoted(name)}," for name in names)
    return f"NAMES = (\n{listed}\n)\nlayers = {{name: model.get_submodule(name) for name in NAMES}}"


_WITHOUT_PARTS = """\
# Layers are the modules that have no modules inside.
layers = {name: each for name, each in model.named_modules() if not any(each.children())}"""
_WITH_WEIGHTS = """\
# Layers are the modules that have no modules inside, or weights of their own beside them.
layers = {
    name: each
    for name, each in model.named_modules()
    if not any(each.children()) or list(each.parameters(recurse=False))
}"""

HOLD = """\
# A forward hook sees what a layer puts out. What it returns takes the place of that: the network
# goes on with a copy, since an in-place ReLU that follows would write over the original.
outputs = []


def hold(module, inputs, output):
    outputs.append(output)
    return output.clone()


handle = model.get_submodule(LAYER).register_forward_hook(hold)"""

TENSORS_IN = '''
def tensors_in(value):
    """Every tensor inside a tuple, a list or a dict, or the tensor itself."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    inside = value if isinstance(value, (tuple, list)) else []
    return [tensor for part in inside for tensor in tensors_in(part)]

'''

MAPS_OF = f'''
{TENSORS_IN.strip()}


def maps_of(batch):
    """The first maps that the layer puts out for one image, (channels, rows, columns)."""
    outputs = []

    def keep(module, inputs, output):  # copies: an in-place ReLU may write over them
        outputs.extend(each.clone() for each in tensors_in(output) if each.ndim == 4)

    handle = model.get_submodule(LAYER).register_forward_hook(keep)
    with torch.no_grad():
        model(batch)
    handle.remove()
    return outputs[0][0].numpy()

'''


SCORES_WITHOUT = '''
def scores_without(layer, channel):
    """The scores before the softmax, with 0 for what the layer puts out in a channel."""

    def switch_off(module, inputs, output):
        output = output.clone()
        output[:, channel] = 0
        return output  # what a hook returns takes the output's place

    handle = layer.register_forward_hook(switch_off)
    with torch.no_grad():
        scores = model(batch)[0].double()
    handle.remove()
    return scores


with torch.no_grad():
    before = model(batch)[0].double()
'''


def value_of(facts: LensFacts) -> list[str]:
    """Defines ``value_of(images)``: a class's score, or the mean or a cell of a layer's channel."""
    if facts.chosen["layer"] is None:
        return [target(facts), _SCORE]
    asked = {"layer": "asked about", "channel": "whose mean it is"}
    if facts.chosen.get("row", -1) < 0:
        return [constants(facts, **asked), _channel("the mean", "[0, CHANNEL].mean()")]
    asked |= {"channel": "of it", "row": "of the channel", "column": "of the channel"}
    return [constants(facts, **asked), _channel("a cell", "[0, CHANNEL, ROW, COLUMN]")]


_SCORE = '''

def value_of(images):
    """The class's score, before the softmax."""
    return model(images)[0, TARGET]

'''


def _channel(what: str, part: str) -> str:
    return _CHANNEL.format(what=what, part=part)


_CHANNEL = '''

def value_of(images):
    """{what} of the channel, in the layer's first call."""
    outputs = []

    def hold(module, inputs, output):
        outputs.append(output)
        return output.clone()  # an in-place ReLU that follows would write over the original

    handle = model.get_submodule(LAYER).register_forward_hook(hold)
    model(images)
    handle.remove()
    return outputs[0]{part}

'''
GRADIENT_AT = '''
def gradient_at(images):
    """How much the value would change with each number of the input, and the value."""
    images = images.clone().requires_grad_()
    value = value_of(images)
    (gradient,) = torch.autograd.grad(value, images)
    return gradient[0].numpy(), value.item()

'''


def baseline(facts: LensFacts) -> str:
    """Makes ``baseline``, what stands for nothing, of the batch's shape."""
    kind = str(facts.chosen["baseline"])
    if kind not in LEVELS:
        return _BASELINES[kind].format(share=round(1 / BLUR), reach=REACH)
    steps = facts.preprocess
    assert steps is not None  # or the lens has refused it
    colour = [(LEVELS[kind] - mean) / std for mean, std in zip(steps.mean, steps.std, strict=True)]
    return _COLOUR.format(kind=kind, colour=", ".join(map(repr, colour)))


_BASELINES = {
    "zero": "baseline = torch.zeros_like(batch)  # the mean colour, as the network gets it",
    "blurred": """\
# The input itself, blurred: rows and columns one after the other.
high, wide = batch.shape[2:]
deviation = min(high, wide) / {share}
reach = [min(side - 1, round({reach} * deviation)) for side in (wide, high)]
baseline = F.gaussian_blur(batch, [2 * reach[0] + 1, 1], deviation)
baseline = F.gaussian_blur(baseline, [1, 2 * reach[1] + 1], deviation)""",
}
_COLOUR = """\
# {kind}, as the network gets it.
colour = torch.tensor([{colour}])
baseline = colour.view(1, -1, 1, 1).expand_as(batch)"""


def batches(files: Iterable[str]) -> str:
    """Makes ``batches``, an input for the image and for each of the other files by its name."""
    listed = "\n".join(f"    {quoted(file)}," for file in files)
    return in_order(_FIRST, _OTHERS.format(files=listed) if listed else "")


_FIRST = "\n\nbatches = {IMAGE: batch}"
_OTHERS = """\
# The other images' files, in the folder where this runs, or paths; one that is there already is not
# taken again.
FILES = [
{files}
]
for file in FILES:
    other = read(file)
    if not any(torch.equal(other, known) for known in batches.values()):
        batches[file] = other"""


def file_of(name: str) -> str:
    """The file of an image: samples are known by their titles on the page."""
    return next((each.path.name for each in samples() if each.title == name), name)
