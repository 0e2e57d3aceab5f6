"""What a lens shows as a PyTorch script that computes the same numbers without HookViz.

>>> recipe = lens_recipe_of(  # doctest: +SKIP
...     model, "cat.jpg", result.lens, result.chosen, result.values, shape=(3, 224, 224)
... )
>>> code = lens_script(recipe)  # doctest: +SKIP
"""

import re
from dataclasses import replace
from importlib import import_module

from hookviz.codegen.assembling import assembled
from hookviz.codegen.lens_facts import LensRecipe, lens_recipe_of
from hookviz.codegen.lens_parts import LensCode
from hookviz.codegen.wording import file_name, quoted

__all__ = ["LensRecipe", "lens_recipe_of", "lens_script", "module_of"]


def lens_script(recipe: LensRecipe) -> str:
    """Python that computes a lens's numbers with PyTorch, torchvision, NumPy and Pillow alone.

    It reads the image, and weights that are no download, from the folder where it runs, and writes
    ``MODEL-LENS.npz`` there, under the names of `LensResult.values`. On the CPU they are the same
    within rounding, for images that are RGB or grey, in sRGB and opaque; where pictures climb,
    rounding grows with every step. What only the person has, such as their own network's code, it
    leaves to be filled in, and says so when it is run.
    """
    code, numbers = _code(recipe)
    image = ""
    if re.search(_OF_IMAGE, code):
        image = f" for the image {quoted(recipe.image)}"
    else:
        recipe = replace(recipe, image="")
    head = (
        f"# The numbers that HookViz's lens {quoted(recipe.lens)} shows of the network\n"
        f"# {quoted(recipe.model)}{image}, computed without HookViz."
    )
    if recipe.chosen.get("beside_random"):
        head += "\n# Those of random weights beside it, the same code gives with such weights."
    return assembled(head, recipe, (code, _save(recipe, numbers)))


def module_of(slug: str) -> str:
    """The module with a lens's code: ``grad-cam`` is in ``hookviz.codegen.lenses.grad_cam``."""
    return f"hookviz.codegen.lenses.{slug.replace('-', '_')}"


def _code(recipe: LensRecipe) -> LensCode:
    code: LensCode = import_module(module_of(recipe.lens)).code(recipe)
    return code


def _save(recipe: LensRecipe, numbers: dict[str, str]) -> str:
    """Print what there is, and write it."""
    rows = "".join(f"    {quoted(name)}: {value},\n" for name, value in numbers.items())
    return _SAVE.format(rows=rows, file=quoted(file_name(f"{recipe.model}-{recipe.lens}", "npz")))


_OF_IMAGE = r"\b(batch|IMAGE|prepare\(|read\(|steps\[)"  # what the part with the image makes
_SAVE = """\
values = {{
{rows}}}
np.savez({file}, **values)
for name, value in values.items():
    print(name, np.shape(value) or value)"""
