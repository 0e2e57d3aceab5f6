"""A picture on the screen as a PyTorch script that draws the same picture without HookViz.

>>> code = script(recipe_of(model, "cat.jpg", grid))  # doctest: +SKIP
"""

import re

from hookviz.recipe import network, picture
from hookviz.recipe.facts import Recipe, recipe_of
from hookviz.recipe.wording import quoted

__all__ = ["Recipe", "recipe_of", "script"]


def script(recipe: Recipe) -> str:
    """Python that draws the picture anew with PyTorch, torchvision, NumPy, matplotlib and Pillow.

    It reads the image, and weights that are no download, from the folder where it runs, and writes
    ``MODEL-LAYER.png`` there, and ``MODEL-LAYER-channel-K.png`` where there is a channel. On the
    CPU its pixels are those of `Grid.png`, for images that are RGB or grey, in sRGB and opaque.
    Values that are not finite end it, since it has no colours for them. What only the person has,
    such as their own network's code, it leaves to be filled in, and says so when it is run.
    """
    parts = (*network.PARTS, *picture.PARTS)
    body = "\n\n".join(code for part in parts if (code := part(recipe)))
    used = [line for line, sign in _IMPORTS.items() if re.search(sign, body)]
    extra = [name for name in ("safetensors", "timm") if any(name in line for line in used)]
    shown = f"{recipe.top} channels" if recipe.top else "all channels"
    head = (
        f"# HookViz's picture of {shown} of layer {quoted(str(recipe.address))} in the network\n"
        f"# {quoted(recipe.model)} for the image {quoted(recipe.image)}, drawn without HookViz.\n"
        f"# Needs: pip install {' '.join(('torch', 'torchvision', 'matplotlib', 'pillow', *extra))}"
    )
    files = [f"IMAGE = {quoted(recipe.image)}  # in the folder where this runs, or a path"]
    weights = network.weights_file(recipe)
    if weights:
        whose = "your own" if recipe.is_checkpoint else "in HookViz's folder assets"
        files += [f"WEIGHTS = {quoted(weights)}  # {whose}"]
    return "\n\n".join((head, "\n".join(used), "\n".join(files), body)) + "\n"


_IMPORTS = {
    "import matplotlib": r"\bmatplotlib\.",
    "import numpy as np": r"\bnp\.",
    "import timm": r"\btimm\.",
    "import torch": r"\btorch\.",
    "from PIL import Image, ImageOps": r"\bImage\.",
    "from safetensors.torch import load_file": r"\bload_file\(",
    "from torch import Tensor, nn": r"\bnn\.",
    "from torchvision import models": r"\bmodels\.",
    "from torchvision.transforms import functional as F": r"\bF\.",
}
"""Every import that a script can need, in order, and what tells that it does."""
