"""Write the text of a script: names, calls, the source of functions, and its head.

`assemble` puts a script together: head, imports, the lines that make the network and its input,
and the parts that are given.
"""

import inspect
import io
import re
import textwrap
import tokenize
from collections.abc import Callable, Iterable
from functools import cache
from textwrap import indent
from typing import Any

from hookviz.codegen.facts import NetworkFacts
from hookviz.models import architectures, torchvision_models
from hookviz.models.bundled import BUNDLED
from hookviz.models.catalog import SOURCES
from hookviz.models.checkpoints.files import USUAL_KEYS
from hookviz.models.networks import WRAPPERS
from hookviz.settings import settings
from hookviz.types import LAST, TOKENS, WINDOWS, Layout


def quoted(text: str) -> str:
    """Quote a string as Python writes it, so that a file's name can't become code."""
    written = repr(text)
    return written if '"' in written or "\\" in written else f'"{written[1:-1]}"'


def call(function: str, *arguments: str, **options: Any) -> str:
    """Write a function call: arguments that are written already, then options by their names."""
    named = [f"{name}={value}" for name, value in options.items()]
    return f"{function}({', '.join([*arguments, *named])})"


def file_name(name: str, ending: str) -> str:
    """Return a file's name of characters that every system takes."""
    return re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII) + f".{ending}"


def to_fill_in(function: str, says: str, then: str) -> str:
    """Write a function that only the person can fill in, and the line that calls it."""
    return _TO_FILL_IN.format(call=function, says=says, then=then)


_TO_FILL_IN = '''
def {call}:
    """{says}"""
    raise SystemExit("Fill in {call} in this script: only you have it.")


{then}'''


def as_maps(layout: Layout) -> str:
    """Write what follows a tensor, with or without its batch, to have it as ``(C, H, W)``.

    Of video that is ``(C, T, H, W)``. Windows have no batch: of those it makes ``(1, C, H, W)``.
    """
    if layout.order == TOKENS:
        rest = f"[..., {layout.prefix_tokens}:, :]" if layout.prefix_tokens else ""
        return f"{rest}.unflatten(-2, {layout.grid}).movedim(-1, -3)"
    if layout.order == WINDOWS:
        return _windows(layout)
    axis = -4 if layout.frames else -3
    return f".movedim(-1, {axis})" if layout.order == LAST else ""


def _windows(layout: Layout) -> str:
    """Write what follows the windows of all images to have them as ``(N, C, H, W)``."""
    (down, across), (rows, columns) = layout.windows, layout.grid
    axes = (0, 5, 3, 1, 4, 2) if layout.strided else (0, 5, 1, 3, 2, 4)
    code = f".unflatten(0, (-1, {down}, {across})).flatten(3, -2).unflatten(3, {layout.window})"
    code += f".permute{axes}.flatten(4).flatten(2, 3)[..., :{rows}, :{columns}]"
    return f"{code}.roll({layout.shift}, (2, 3))" if any(layout.shift) else code


_LINE_WIDTH = 100  # characters of a line


def source_of(*functions: Callable[..., Any]) -> str:
    """Return the source of functions as a person without HookViz would write it.

    Type annotations are left out, and what docstrings say from ``Args:`` or ``Raises:`` on. A
    function may use ``np``, ``torch``, ``nn``, ``math`` and functions that the script has too; no
    constant of its module.

    >>> print(source_of(grad_cam))  # doctest: +SKIP
    def grad_cam(activation, gradient):
        ...
    """
    return "\n\n\n".join(map(_source, functions))


@cache
def _source(function: Callable[..., Any]) -> str:
    body = _body(textwrap.dedent(inspect.getsource(function)))
    body = _SECTIONS.sub(r"\n\1", body, count=1)
    body = _RETURNED.sub(r"\1return \3", body)
    body = _ANNOTATED.sub(r"\1\2 = ", body)
    body = _SHORT_DOCSTRING.sub(r'\1"""', body, count=1)
    return f"{_signature(function)}\n{body}".rstrip()


def _body(source: str) -> str:
    """Return what comes after the signature, which may take several lines."""
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.OP:
            continue
        depth += (token.string in "([{") - (token.string in ")]}")
        if token.string == ":" and depth == 0:
            return "".join(source.splitlines(keepends=True)[token.end[0] :])
    raise AssertionError(source)


def _signature(function: Callable[..., Any]) -> str:
    """Return the ``def`` line without annotations, wrapped as ruff does where it is too long."""
    bare = inspect.signature(function)
    empty = inspect.Parameter.empty
    parameters = [each.replace(annotation=empty) for each in bare.parameters.values()]
    inside = str(bare.replace(parameters=parameters, return_annotation=empty))[1:-1]
    line = f"def {function.__name__}({inside}):"
    return line if len(line) <= _LINE_WIDTH else f"def {function.__name__}(\n    {inside}\n):"


_SECTIONS = re.compile(r'\n\n {4}(?:Args|Raises|Attributes):\n.*?\n( {4}""")', re.DOTALL)
_SHORT_DOCSTRING = re.compile(r'\A( {4}"""[^\n"]+)\n {4}"""')  # one line is left of it
_RETURNED = re.compile(r"^( {4,})(\w+): [\w.\[\], |]+ = ([^\n]+)\n\1return \2$", re.MULTILINE)
_ANNOTATED = re.compile(r"^( {4,}\(?)(\w+): [\w.\[\], |]+ = ", re.MULTILINE)


_CALL_WIDTH = 86  # characters that a call can have and still stand in one line


def _network(facts: NetworkFacts) -> str:
    """Write ``model``, and ``weights`` where torchvision's bring the preprocessing."""
    if facts.origin == "own":
        says = "Your own network with its weights in it, made as you made it for HookViz."
        evaluate = "" if facts.train else ".eval()"
        return to_fill_in("build_model()", says, f"model = build_model(){evaluate}")
    lines = [_bundled_source(facts.model)] if facts.origin == "bundled" else []
    lines += ["# eval() makes batch norm and dropout work as in use, not as in training."]
    if _brings_steps(facts) and (facts.image or _from_library(facts)):
        unused = "" if _from_library(facts) else "  # for their preprocessing alone"
        name = quoted(facts.architecture)
        lines += [f"weights = models.get_model_weights({name}).DEFAULT{unused}"]
    if facts.weights == "random":
        lines += ["torch.manual_seed(0)  # the same random weights every time"]
    lines += [f"model = {_architecture(facts)}.eval()"]
    file = _weights_file(facts)
    if file:
        lines += _load_weights(facts, file)
    return "\n".join(lines)


def _architecture(facts: NetworkFacts) -> str:
    """Write the call that makes the network, with its weights where a library has them."""
    pretrained = _from_library(facts)
    options: dict[str, object] = {}
    if facts.is_checkpoint:
        options["num_classes"] = facts.classes
    if facts.origin == "bundled":
        return call(BUNDLED[facts.model].parts[-1].__name__, *map(str, options.values()))
    if facts.library_calls:
        options |= facts.library_calls.pretrained if pretrained else {}
        return call(facts.library_calls.create, quoted(facts.architecture), **options)
    if pretrained:
        options["weights"] = "weights" if _brings_steps(facts) else '"DEFAULT"'
    else:  # heads for training draw random numbers too, a checkpoint needs none
        heads = facts.weights == "random"
        options |= torchvision_models.builder_options(facts.architecture, training_heads=heads)
        if "init_weights" in options:
            options["init_weights"] = heads
    line = call("models.get_model", quoted(facts.architecture), **options)
    return line if len(line) < _CALL_WIDTH else line.replace("(", "(\n    ")[:-1] + "\n)"


def _from_library(facts: NetworkFacts) -> bool:
    """Return whether the library that has the architecture looks after its weights as well."""
    return facts.weights == "pretrained" and not facts.is_shipped


@cache
def _bundled_source(name: str) -> str:
    """Return the source of a network that ships, docstrings cut to their first lines."""
    network = BUNDLED[name]
    source = "\n\n".join(inspect.getsource(part) for part in network.parts)
    source = source.replace("len(CATEGORIES)", str(len(network.categories)))
    cut = re.sub(r'("""(?:(?!""")[^\n])+)\n.*?"""', r'\1"""', source, flags=re.DOTALL)
    return f"\n{cut}\n"


def _weights_file(facts: NetworkFacts) -> str | None:
    """Return which file of weights the script reads; None where a library looks after that."""
    if facts.is_checkpoint:
        return facts.weights
    return BUNDLED[facts.model].weights_file.name if facts.is_shipped else None


def _load_weights(facts: NetworkFacts, file: str) -> list[str]:
    """Write code that fills ``model`` from the file."""
    safe = file.endswith(".safetensors")
    read = "load_file(WEIGHTS)" if safe else _TORCH_LOAD
    if not facts.is_checkpoint:
        return [f"model.load_state_dict({read})"]
    lines = [] if safe else [_UNWRAP.format(keys=_written(USUAL_KEYS))]
    tensors = read if safe else f"weights_in({read})"
    lines += [_RENAME.format(tensors=tensors, wrappers=_written(WRAPPERS))]
    if facts.model.startswith("densenet"):
        lines += [_OLD_DENSENET]
    return [*lines, _FILL]


def _written(names: Iterable[str]) -> str:
    """Write names in a line or, where that would be too long, in as many lines as ruff does."""
    words = [quoted(name) for name in names]
    line = f"({', '.join(words)})"
    return line if len(line) < _CALL_WIDTH else "(\n    " + ",\n    ".join(words) + ",\n)"


_TORCH_LOAD = 'torch.load(WEIGHTS, map_location="cpu", weights_only=True)'
_UNWRAP = '''
KEYS = {keys}  # where training scripts put the weights
AVERAGES = ("ema", "swa", "averag")  # kept beside them, and taken where there is nothing else


def weights_in(saved):
    """The tensors by their names, whatever is saved around and beside them."""
    inner = {{str(key).lower(): value for key, value in saved.items() if isinstance(value, dict)}}
    for key in KEYS:
        if key in inner and (tensors := weights_in(inner[key])):
            return tensors
    order = sorted(inner, key=lambda key: any(word in key for word in AVERAGES))
    tensors = {{str(key): value for key, value in saved.items() if isinstance(value, torch.Tensor)}}
    return max([tensors, *(weights_in(inner[key]) for key in order)], key=len)

'''
_RENAME = """\
own = model.state_dict()
# Names without what DataParallel, torch.compile or a class around the network put into them.
WRAPPERS = {wrappers}
state = {{}}
for name, value in {tensors}.items():
    parts = [part for part in name.split(".") if part not in WRAPPERS]
    state[name if name in own else ".".join(parts)] = value\
"""
_OLD_DENSENET = """\
for old in ("norm.1", "norm.2", "conv.1", "conv.2"):  # as older files spell norm1 and the like
    new = old.replace(".", "")
    state = {name.replace(f".{old}.", f".{new}."): value for name, value in state.items()}\
"""
_FILL = """\
before = [s.removesuffix(name) for s in state for name in own if f".{s}".endswith(f".{name}")]
prefix = max(dict.fromkeys(["", *before]), key=before.count)  # the most common one
lacks = [name for name in own if prefix + name not in state]
lacks = [name for name in lacks if not name.endswith("num_batches_tracked")]  # counts steps
if lacks:
    names = [name for name in state if name.removeprefix(prefix) not in own]
    raise SystemExit(f"{WEIGHTS} has no {lacks[:3]}; rename what it calls so, of {names[:9]}.")
own.update({name: state[prefix + name] for name in own if prefix + name in state})
model.load_state_dict(own)\
"""


def _brings_steps(facts: NetworkFacts) -> bool:
    """Return whether torchvision's weights bring the preprocessing along.

    Those that classify bring all steps. Others leave the crop out, or have clips for input.
    """
    known = facts.origin == "torchvision"
    known = known and torchvision_models.task(facts.architecture) == "classification"
    return known and facts.preprocess == architectures.preprocess(facts.model)


def _image(facts: NetworkFacts) -> str:
    """Write ``batch``, the network's input, of the file; with a function where there are more."""
    if not facts.image:
        return ""
    grey = facts.preprocess is not None and facts.preprocess.channels == 1
    file = "file" if facts.more_images else "IMAGE"
    lines = [
        "# Upright, as the camera was held. (HookViz also converts colour profiles to sRGB, and",
        "# lays transparent images on white.)",
        f'image = ImageOps.exif_transpose(Image.open({file})).convert("RGB")',
        *(['image = image.convert("L")  # grey'] if grey else []),
    ]
    own = facts.preprocess is None and facts.library_calls is None
    steps = ["values = prepare(image)"] if own else _steps(facts)
    axes = (
        "frames, height, width" if facts.preprocess and facts.preprocess.frames else "height, width"
    )
    alone = f"values.unsqueeze(0)  # of one image: (1, channels, {axes})"
    if facts.more_images:
        body = indent("\n".join([*lines, *steps, f"return {alone}"]), "    ")
        read = f"def read(file):\n{body}\n\n\nbatch = read(IMAGE)"
        return to_fill_in("prepare(image)", _PREPARE, read) if own else f"\n{read}"
    if own:
        steps = ["\n" + to_fill_in("prepare(image)", _PREPARE, *steps)]
    return "\n".join([*lines, *steps, f"batch = {alone}"])


_PREPARE = "Your own preprocessing: an RGB Pillow image in, a float tensor of (C, H, W) out."


def _steps(facts: NetworkFacts) -> list[str]:
    """Write ``values``, the normalised ``(C, H, W)``, of ``image``."""
    steps = facts.preprocess
    if steps is None and facts.library_calls:
        return list(facts.library_calls.steps)
    assert steps is not None  # else a person's own function makes them
    side = facts.size or steps.crop
    target = max(1, round(steps.resize * side / steps.crop))
    brought = _brings_steps(facts)
    if brought and not facts.whole:
        sizes = {"crop_size": side, "resize_size": target} if facts.size else {}
        why = f"; made for {steps.crop} pixels" if sizes else ""
        return [
            f"# The preprocessing that belongs to the weights: resize, crop, normalise{why}.",
            f"values = {call('weights.transforms', **sizes)}(image)",
        ]
    lines = []
    how = [] if steps.interpolation == "bilinear" else ["F.InterpolationMode.BICUBIC"]
    mean, std = str(list(steps.mean)), str(list(steps.std))
    if brought:
        lines += ["steps = weights.transforms()  # the preprocessing that belongs to the weights"]
        how, mean, std = how and ["steps.interpolation"], "steps.mean", "steps.std"
    if facts.whole:
        most, least = max(settings().max_input, side), min(facts.min_size, side)
        lines += [
            f"# All of the image: {side} pixels along its shorter side, or fewer where there would",
            f"# be over {most} along its longer side. No side is below {least}.",
            f"scale = min({side} / min(image.size), {most} / max(image.size))",
            f"width, height = (max({least}, round(side * scale)) for side in image.size)",
            f"image = {call('F.resize', 'image', '[height, width]', *how)}",
        ]
    else:
        lines += [
            f"# Resize the shorter side to {target} pixels, crop the centre, normalise.",
            f"image = {call('F.resize', 'image', f'[{target}]', *how)}",
            f"image = F.center_crop(image, [{side}])",
        ]
    lines += [f"values = F.normalize(F.to_tensor(image), {mean}, {std})"]
    if steps.frames:
        lines += [
            f"# A still image as a clip of {steps.frames} frames, (C, T, H, W).",
            f"values = values.unsqueeze(1).repeat(1, {steps.frames}, 1, 1)",
        ]
    return lines


def assemble(head: str, facts: NetworkFacts, parts: Iterable[str]) -> str:
    """Assemble a script: what it is, its imports, its files, the network and its input, the parts.

    Args:
        head: comment lines that say what it does.
        facts: the network and the image.
        parts: lines of code, which find ``model`` and ``batch``; empty ones are left out.
    """
    body = "\n\n".join(code for code in (_network(facts), _image(facts), *parts) if code)
    lines = [
        [line for line, sign in group.items() if re.search(sign, body)]
        for group in (_STANDARD, _INSTALLED)
    ]
    if re.search(r"(?<!torch\.)\bTensor\b", body):
        lines[1] = [line.replace("import nn", "import Tensor, nn") for line in lines[1]]
    names = ["torch", "torchvision", "matplotlib", "pillow", "safetensors", *_LIBRARIES]
    used = "\n".join(lines[1])
    needs = [name for name in names if _MODULES.get(name, name) in used or name in _ALWAYS]
    files = []
    if facts.image:
        files += [f"IMAGE = {quoted(facts.image)}  # in the folder where this runs, or a path"]
    weights = _weights_file(facts)
    if weights:
        whose = "your own" if facts.is_checkpoint else "in HookViz's folder assets"
        files += [f"WEIGHTS = {quoted(weights)}  # {whose}"]
    head = f"{head}\n# Needs: pip install {' '.join(needs)}"
    imports = ["\n".join(group) for group in lines if group]
    blocks = (head, *imports, "\n".join(files), body)
    return "\n\n".join(block for block in blocks if block) + "\n"


_ALWAYS = ("torch", "torchvision")
_LIBRARIES = [source.name for source in SOURCES if source.script]
_MODULES = {"pillow": "PIL"}
_STANDARD = {
    "import copy": r"\bcopy\.deepcopy",
    "import inspect": r"\binspect\.",
    "import math": r"\bmath\.",
    "import time": r"\btime\.perf_counter",
    "from pathlib import Path": r"\bPath\(",
}
_INSTALLED = {
    "import matplotlib": r"\bmatplotlib\.",
    "import numpy as np": r"\bnp\.",
    **{f"import {name}": rf"\b{name}\." for name in _LIBRARIES},
    "import torch": r"\btorch\.",
    "from PIL import Image": r"(?s)\A(?!.*\bImageOps\.).*\bImage\.",
    "from PIL import Image, ImageOps": r"\bImageOps\.",
    "from safetensors.torch import load_file": r"\bload_file\(",
    "from torch import nn": r"\bnn\.",
    "from torch.nn.utils import prune": r"\bprune\.",
    "from torch.overrides import TorchFunctionMode": r"\bTorchFunctionMode\b",
    "from torchvision import models": r"\bmodels\.",
    "from torchvision.transforms import functional as F": r"\bF\.",
}
"""Every import that a script can need, in order, and what tells that it does."""
