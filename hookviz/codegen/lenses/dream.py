"""DeepDream: the image climbs along a layer's mean square."""

from hookviz.codegen import optimizing, picture_space
from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import LensCode, constants, in_order


def code(recipe: LensRecipe) -> LensCode:
    """The image's own spectrum to begin with, and as many steps as were done."""
    (steps,) = recipe.values["history"]
    grey = recipe.shape[0] == 1
    lines = (
        constants(recipe, layer=""),
        f"STEPS = {steps}  # {optimizing.STEPS_SAYS}",
        constants(recipe, rate="how far each step goes", seed="of how the image is moved"),
        "SIZE = batch.shape[2:]  # rows and columns of pixels",
        optimizing.as_input(recipe),
        picture_space.fourier(recipe),
        optimizing.moved(),
        optimizing.output_of(of="LAYER"),
        _VALUES,
        _BEGIN.format(mixed="" if grey else _INDEPENDENT),
        optimizing.climb("0.05 * RATE", steady=True, loss=["-values.sum()"]),
        optimizing.levels(recipe),
    )
    return in_order(*lines), {
        "picture": "shown[0]",
        "before": "np.array(history[0][0])",
        "after": "values[0].item()",
        "history": "np.array(history)[:, 0]",
    }


_VALUES = '''

def values_of(output):
    """The mean square of all that the layer puts out (Mordvintsev et al., 2015), (N,)."""
    return output.square().flatten(1).mean(1)

'''
_BEGIN = """
# The image's own spectrum, without the bounds of black and white, which have infinite logits.
plain = ((batch - low) / (high - low)).clamp(0.02, 0.98).logit()
{mixed}spectrum = torch.fft.rfft2(4 * plain, norm="ortho") / SCALE
parameters = torch.view_as_real(spectrum).contiguous().requires_grad_()"""
_INDEPENDENT = """\
plain = torch.einsum("dc,nchw->ndhw", COLOURS.inverse(), plain)
"""
