"""Assemble a script of its parts, with a head and the imports that they need."""

import re
from collections.abc import Iterable

from hookviz.codegen import network
from hookviz.codegen.facts import NetworkFacts
from hookviz.codegen.wording import quoted
from hookviz.models.catalog import SOURCES


def assembled(head: str, facts: NetworkFacts, parts: Iterable[str]) -> str:
    """Assemble a script: what it is, its imports, its files, the network and its input, the parts.

    Args:
        head: comment lines that say what it does.
        facts: the network and the image.
        parts: lines of code, which find ``model`` and ``batch``; empty ones are left out.
    """
    begin = (part(facts) for part in network.PARTS)
    body = "\n\n".join(code for code in (*begin, *parts) if code)
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
    weights = network.weights_file(facts)
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
