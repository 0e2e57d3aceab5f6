"""Write what a lens shows as a PyTorch script that computes the same without HookViz.

>>> facts = lens_facts_of(model, "cat.jpg", result, shape=(3, 224, 224))  # doctest: +SKIP
>>> code = lens_script(facts, find_lens(result.lens).script)  # doctest: +SKIP
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.script_text import as_maps, assemble, file_name, quoted, source_of
from hookviz.errors import HookVizError
from hookviz.explaining.attribution.methods import LEVELS, blurred
from hookviz.images.samples import samples
from hookviz.language.saying import say
from hookviz.outputs.answer import LOGITS, MAPS, NUMBER
from hookviz.types import ActivationKey
from hookviz.wording import times


def in_order(*chunks: str) -> str:
    """Join chunks of code, with two empty lines around functions and classes."""
    code = ""
    for chunk in (chunk.strip("\n") for chunk in chunks if chunk):
        last = [line for line in code.splitlines() if line[:1].strip()][-1:]
        first = next(line for line in chunk.splitlines() if not line.startswith("#"))
        apart = any(line.startswith(("def ", "class ")) for line in (*last, first))
        apart &= first[0] != " "  # else it goes on with the function before
        code += ("\n\n\n" if apart else "\n") * bool(code) + chunk
    return code


def constant(facts: LensFacts, name: str, comment: str = "") -> str:
    """Write a parameter of the lens as a constant of the script, such as ``LAYER = "conv1"``."""
    value = facts.chosen[name]
    written = quoted(value) if isinstance(value, str) else repr(value)
    return f"{name.upper()} = {written}" + (f"  # {comment}" if comment else "")


def constants(facts: LensFacts, **comments: str) -> str:
    """Write several parameters as constants, a line each, by name, with a comment for each."""
    return "\n".join(constant(facts, name, comment) for name, comment in comments.items())


def target(facts: LensFacts) -> str:
    """Write the class as a constant, with its label in a comment."""
    number, names = facts.chosen["target"], facts.categories
    label = names[number] if number < len(names) else "a class without a name"
    return constant(facts, "target", f"the class: {one_line(label)}")


def one_line(text: str) -> str:
    """Return a label in a form that can stand in a comment."""
    return text if text.isprintable() else ascii(text)


def layers(facts: LensFacts) -> str:
    """Write ``layers``, the modules that a person would call layers, by their names."""
    names = frozenset(facts.structure.layers)
    if names == facts.structure.without_parts:
        return _WITHOUT_PARTS
    if names == facts.structure.without_parts | facts.structure.with_weights:
        return _WITH_WEIGHTS
    return named_layers(facts.structure.layers)


def innermost(facts: LensFacts) -> str:
    """Write ``layers``, of the modules that count as layers those that have none of them inside."""
    names = [
        name
        for name in facts.structure.layers
        if not any(other.startswith(f"{name}.") for other in facts.structure.layers)
    ]
    return (
        _WITHOUT_PARTS if frozenset(names) == facts.structure.without_parts else named_layers(names)
    )


def named_layers(names: Iterable[str]) -> str:
    """Write ``layers`` of these names."""
    return f"{constant_of(names)}\nlayers = {{name: model.get_submodule(name) for name in NAMES}}"


def constant_of(names: Iterable[str]) -> str:
    """Write these names as the constant ``NAMES``, a line each."""
    listed = "\n".join(f"    {quoted(name)}," for name in names)
    return f"NAMES = (\n{listed}\n)"


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


def scores_without(*, last: bool | None) -> str:
    """Write ``scores_without(layer, channel)``, of layers with channels first, or `last`; or both.

    None is for convolutions and linear layers mixed.
    """
    axis = "-1 if isinstance(layer, nn.Linear) else 1"
    either = f"output.movedim({axis}, 0)[channel]"
    places = {True: "output[..., channel]", False: "output[:, channel]", None: either}
    return _SCORES_WITHOUT.format(place=places[last])


_SCORES_WITHOUT = '''
def scores_without(layer, channel):
    """The scores before the softmax, with 0 for what the layer puts out in a channel."""

    def switch_off(module, inputs, output):
        output = output.clone()
        {place} = 0
        return output  # what a hook returns takes the output's place

    handle = layer.register_forward_hook(switch_off)
    with torch.no_grad():
        scores = model(batch)[0].double()
    handle.remove()
    return scores


with torch.no_grad():
    before = model(batch)[0].double()
'''


_HOLDING = '''
def forward(images, *names):
    """What the network puts out, and by name what these layers put out {calls}."""
    outputs = {{}}

    def hold_as(name):{before}
        def hold(module, inputs, output):  # a forward hook: what it returns goes on in its place
            {hold}
            return output.clone()  # an in-place ReLU that follows would write over the original

        return hold

    handles = {handles}
    scores = model(images)
    for handle in handles:
        handle.remove()
    return scores, outputs

'''
FORWARD = _HOLDING.format(
    calls="in their first calls",
    before="",
    hold="outputs.setdefault(name, output)",
    handles="[model.get_submodule(name).register_forward_hook(hold_as(name)) for name in names]",
)
_FORWARD_OF_CALLS = _HOLDING.format(
    calls="in the call behind the #",
    before="""
        before = [None] * int(name.partition("#")[2] or 0)  # the calls that come first
""",
    hold="before.pop() if before else outputs.setdefault(name, output)",
    handles="""[
        model.get_submodule(name.split("#")[0]).register_forward_hook(hold_as(name))
        for name in names
    ]""",
)


def forward(facts: LensFacts) -> str:
    """Write ``forward(images, *names)``, of the calls of layers that the lens is about."""
    asked = (ActivationKey.read(str(facts.chosen.get(name))) for name in ("layer", "of"))
    return _FORWARD_OF_CALLS if any(address.call for address in asked) else FORWARD


def value_of(facts: LensFacts) -> list[str]:
    """Write ``value_of(images)``: a class's score, or the mean or a cell of a layer's channel."""
    if facts.chosen["layer"] is None:
        says, code = "The class's score, before the softmax.", "model(images)[0, TARGET]"
        return [target(facts), _VALUE_OF.format(says=says, code=code)]
    comments, part = {"layer": "asked about", "channel": "whose mean it is"}, "CHANNEL].mean()"
    says = "The mean of the channel of that layer."
    if facts.chosen.get("row", -1) >= 0:
        comments |= {"channel": "of it", "row": "of the channel", "column": "of the channel"}
        says, part = "A cell of the channel of that layer.", "CHANNEL, ROW, COLUMN]"
    found = "forward(images, LAYER)[1][LAYER]"
    value = _VALUE_OF.format(says=says, code=f"{found}[0, {part}")
    if facts.layout.last:
        moved = f"maps = {found}{as_maps(facts.layout)}"
        value = value.replace(f"return {found}", f"{moved}\n    return maps")
    return [constants(facts, **comments), forward(facts), value]


_VALUE_OF = '''

def value_of(images):
    """{says}"""
    return {code}

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
    """Write ``baseline``, which stands for an absent input, of the batch's shape."""
    kind = str(facts.chosen["baseline"])
    if kind == "zero":
        return "baseline = torch.zeros_like(batch)  # the mean colour, as the network gets it"
    if kind == "blurred":
        return in_order(source_of(blurred), "baseline = blurred(batch)")
    steps = facts.preprocess
    assert steps is not None  # or the lens has refused it
    colour = [(LEVELS[kind] - mean) / std for mean, std in zip(steps.mean, steps.std, strict=True)]
    return _COLOUR.format(kind=kind, colour=", ".join(map(repr, colour)))


_COLOUR = """\
# {kind}, as the network gets it.
colour = torch.tensor([{colour}])
baseline = colour.view(1, -1, 1, 1).expand_as(batch)"""


def batches(files: Iterable[str]) -> str:
    """Write ``batches``, an input for the image and for each of the other files by its name."""
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
    """Return the file of an image: samples are known by their titles on the page."""
    return next((each.path.name for each in samples() if each.title == name), name)


def lens_script(facts: LensFacts, script: Callable[[LensFacts], LensCode]) -> str:
    """Write Python that computes a lens's numbers with PyTorch, torchvision, NumPy and Pillow.

    It reads the image, and weights that are no download, from the folder where it runs, and writes
    ``MODEL-LENS.npz`` there, under the names of `LensResult.values`. On the CPU they are the same
    within rounding, for images that are RGB or grey, in sRGB and opaque; where pictures are
    optimised, rounding grows with every step. What only the person has, such as their own network's
    code, it leaves to be filled in, and says so when it is run.

    Raises:
        HookVizError: it asks about an output that is no row of scores before a softmax, or about
            an input that is no image.
    """
    is_of_maps = facts.lens == "segmentation"
    asks = "target" in facts.chosen or facts.lens in ("prune-weights", "segmentation")
    plain = ("", LOGITS, NUMBER, *([MAPS] if is_of_maps else []))
    if asks and (facts.means.part is not None or facts.means.kind not in plain):
        raise HookVizError(
            say(
                "There is no script for this question: scripts read an output as scores before a "
                "softmax, and that of {model} is something else.",
                model=facts.model,
            )
        )
    if len(facts.shape) != 3:
        raise HookVizError(
            say(
                "There is no script for this question: scripts read an image from a file, and "
                "{model} takes {shape}.",
                model=facts.model,
                shape=times(facts.shape),
            )
        )
    code, numbers = script(facts)
    numbers = {name: value for name, value in numbers.items() if name in facts.values}
    image = ""
    if re.search(_OF_IMAGE, code):
        image = f" for the image {quoted(facts.image)}"
    else:
        facts = replace(facts, image="")
    head = (
        f"# The numbers that HookViz's lens {quoted(facts.lens)} shows of the network\n"
        f"# {quoted(facts.model)}{image}, computed without HookViz."
    )
    if facts.chosen.get("beside_random"):
        head += "\n# Those of random weights beside it, the same code gives with such weights."
    return assemble(head, facts, (code, _save(facts, numbers)))


def _save(facts: LensFacts, numbers: dict[str, str]) -> str:
    """Write code that prints the numbers and saves them."""
    rows = "".join(f"    {quoted(name)}: {value},\n" for name, value in numbers.items())
    return _SAVE.format(rows=rows, file=quoted(file_name(f"{facts.model}-{facts.lens}", "npz")))


_OF_IMAGE = r"\b(batch|IMAGE|prepare\(|read\(|steps\[)"  # what the part with the image makes
_SAVE = """\
values = {{
{rows}}}
np.savez({file}, **values)
for name, value in values.items():
    print(name, np.shape(value) or value)"""
