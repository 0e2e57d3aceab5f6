"""A picture on the screen as a PyTorch script that draws the same picture without HookViz.

>>> code = script(picture_facts_of(model, "cat.jpg", grid))  # doctest: +SKIP
"""

from hookviz.codegen import picture
from hookviz.codegen.assembling import assembled
from hookviz.codegen.facts import PictureFacts, picture_facts_of
from hookviz.codegen.wording import quoted

__all__ = ["PictureFacts", "picture_facts_of", "script"]


def script(facts: PictureFacts) -> str:
    """Python that draws the picture anew with PyTorch, torchvision, NumPy, matplotlib and Pillow.

    It reads the image, and weights that are no download, from the folder where it runs, and writes
    ``MODEL-LAYER.png`` there, and ``MODEL-LAYER-channel-K.png`` where there is a channel. On the
    CPU its pixels are those of `Grid.png`, for images that are RGB or grey, in sRGB and opaque.
    Values that are not finite end it, since it has no colours for them. What only the person has,
    such as their own network's code, it leaves to be filled in, and says so when it is run.
    """
    shown = f"{facts.top} channels" if facts.top else "all channels"
    head = (
        f"# HookViz's picture of {shown} of layer {quoted(str(facts.address))} in the network\n"
        f"# {quoted(facts.model)} for the image {quoted(facts.image)}, drawn without HookViz."
    )
    return assembled(head, facts, (part(facts) for part in picture.PARTS))
