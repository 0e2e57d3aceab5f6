"""Feature inversion: the image rebuilt from a layer's activations alone."""

from hookviz.codegen import optimizing, picture_space
from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import LensCode, constants, in_order
from hookviz.codegen.wording import quoted
from hookviz.synthesis.inversion import spread


def code(recipe: LensRecipe) -> LensCode:
    """A picture for each layer that was gone through, from the same noise."""
    chosen = recipe.chosen
    names = (chosen["layer"],) if chosen["layer"] else spread(recipe.convs, chosen["layers"])
    done = [quoted(name) for name in names[: recipe.values["layers"][0]]]
    listed = f"{done[0]}," if len(done) == 1 else "\n" + "".join(f"    {each},\n" for each in done)
    lines = (
        f"LAYERS = ({listed})",
        constants(
            recipe,
            steps=optimizing.STEPS_SAYS,
            smooth="what the total variation counts",
            seed="of the noise to begin with",
        ),
        "SIZE = batch.shape[2:]  # rows and columns of pixels",
        optimizing.as_input(recipe),
        picture_space.fourier(recipe),
        optimizing.output_of(of="layer"),
        optimizing.VARIATION,
        _DISTANCE,
        _REBUILT.format(channels=recipe.shape[0]),
        optimizing.levels(recipe, "torch.cat(pictures)"),
    )
    return in_order(*lines), {
        "pictures": "shown",
        "distances": "np.array(distances)",
        "layers": "np.array(LAYERS)",
    }


_DISTANCE = '''

def distance(output, known):
    """|output - known|² / |known|² (Mahendran and Vedaldi, 2015): 0 for the same, 1 for nothing."""
    return (output - known).square().sum() / known.square().sum()

'''
_REBUILT = '''

def rebuilt(layer):
    """A picture that the layer hardly tells from the image, and the distance that is left."""
    with torch.no_grad():
        known = output_of(batch, layer)
    noise = torch.Generator().manual_seed(SEED)  # the same for every layer
    parameters = 0.01 * torch.randn((1, {channels}, *SCALE.shape, 2), generator=noise)
    parameters.requires_grad_()  # real and imaginary parts of a spectrum
    optimizer = torch.optim.Adam([parameters], lr=0.05, eps=1e-16)  # gradients can be tiny
    for _ in range(STEPS):
        pictures = pictures_of(parameters)
        loss = distance(output_of(as_input(pictures), layer), known)
        loss = loss + 10 * SMOOTH * variation(pictures)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        pictures = pictures_of(parameters)
        return pictures, distance(output_of(as_input(pictures), layer), known).item()


pictures, distances = zip(*(rebuilt(layer) for layer in LAYERS), strict=True)'''
