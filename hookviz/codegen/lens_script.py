"""Write what a lens shows as a PyTorch script that computes the same without HookViz.

>>> facts = lens_facts_of(  # doctest: +SKIP
...     model, "cat.jpg", result.lens, result.chosen, result.values, shape=(3, 224, 224)
... )
>>> code = lens_script(facts, find_lens(result.lens).script)  # doctest: +SKIP
"""

import re
from collections.abc import Callable
from dataclasses import replace

from hookviz.codegen.lens_facts import LensCode, LensFacts
from hookviz.codegen.script_head import assembled
from hookviz.codegen.wording import file_name, quoted
from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.outputs.answer import LOGITS, MAPS, NUMBER
from hookviz.wording import times


def lens_script(facts: LensFacts, script: Callable[[LensFacts], LensCode]) -> str:
    """Write Python that computes a lens's numbers with PyTorch, torchvision, NumPy and Pillow.

    It reads the image, and weights that are no download, from the folder where it runs, and writes
    ``MODEL-LENS.npz`` there, under the names of `LensResult.values`. On the CPU they are the same
    within rounding, for images that are RGB or grey, in sRGB and opaque; where pictures are
    optimised, rounding grows with every step. What only the person has, such as their own network's
    code, it leaves to be filled in, and says so when it is run.

    Args:
        facts: what the numbers depend on.
        script: the lens's own, which writes the part that is about the lens.

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
    return assembled(head, facts, (code, _save(facts, numbers)))


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
