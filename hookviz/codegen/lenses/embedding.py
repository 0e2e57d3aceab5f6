"""Embedding: images as vectors, and how alike they are."""

from hookviz.capturing.features import named
from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import LensCode, constants, in_order
from hookviz.codegen.wording import quoted
from hookviz.images.samples import samples


def code(recipe: LensRecipe) -> LensCode:
    """The vector of each image, and the cosine of the angle between any two."""
    lines = [constants(recipe, layer="whose output becomes a vector"), _CAPTURE]
    lines += [_CHANNELS_LAST] if recipe.channels_last else []
    lines += [_POOL[recipe.chosen["pool"]]]
    if "similarity" not in recipe.values:  # of one image alone
        return in_order(*lines, _ONE), {"vectors": "vectors"}
    files = [recipe.image, *map(_file, named(recipe.chosen["images"]))]
    listed = "\n".join(f"    {quoted(file)}," for file in files)
    lines += [_SEVERAL.format(files=listed)]
    return in_order(*lines), {
        "vectors": "vectors",
        "similarity": "similarity",
        "names": "np.array(FILES)",
    }


def _file(name: str) -> str:
    """The file of an image: samples are known by their titles on the page."""
    return next((each.path.name for each in samples() if each.title == name), name)


_CAPTURE = '''

def vector_of(batch):
    """What the layer makes of an image, as a vector."""
    outputs = []

    def keep(module, inputs, output):  # a copy: an in-place ReLU may write over it
        outputs.append(output.clone())

    handle = model.get_submodule(LAYER).register_forward_hook(keep)
    with torch.no_grad():
        model(batch)
    handle.remove()
    values = outputs[0][0].numpy()  # of its first call for the only image'''
_CHANNELS_LAST = "    values = np.moveaxis(values, -1, 0)  # from where this layer has its channels"
_POOL = {
    "mean": """\
    # The mean of each channel over all positions.
    return values.reshape(len(values), -1).astype(np.float64).mean(axis=1).astype(np.float32)

""",
    "flat": "    return values.reshape(-1)  # every value, channel by channel\n\n",
}
_ONE = "vectors = np.stack([vector_of(batch)])  # (1, D)"
_SEVERAL = """\
# The images' files, in the folder where this runs, or paths.
FILES = (
{files}
)
vectors = np.stack([vector_of(batch), *(vector_of(read(file)) for file in FILES[1:])])  # (N, D)
wide = vectors.astype(np.float64)
lengths = np.linalg.norm(wide, axis=1, keepdims=True)
unit = wide / np.where(lengths > 0, lengths, 1)
similarity = np.clip(unit @ unit.T, -1, 1)  # the cosine of the angle between any two, (N, N)"""
