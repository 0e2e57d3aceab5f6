"""One channel across images: its map on each of them."""

from hookviz.capturing.features import named
from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import MAPS_OF, LensCode, batches, constants, file_of, in_order


def code(recipe: LensRecipe) -> LensCode:
    """A pass for each image, in the order in which the lens has them."""
    inputs = batches(file_of(name) for name in named(recipe.chosen["images"]))
    lines = in_order(
        constants(recipe, layer="", channel="from 0"), MAPS_OF, inputs, _MAPS, _NUMBERS
    )
    values = {"names": "np.array(names)"}
    values |= {name: name for name in ("highest", "mean", "place")}
    apart = [name for name in recipe.values if name.startswith("map_")]
    each = {name: f"maps[{name.removeprefix('map_')}]" for name in apart}
    return lines, values | (each or {"maps": "np.stack(maps)"})


_MAPS = """\
found = {file: maps_of(each)[CHANNEL] for file, each in batches.items()}  # (rows, columns) each
tops = {file: each.max(initial=-np.inf, where=np.isfinite(each)) for file, each in found.items()}
# The image looked at comes first, then the others by their highest value.
names = [IMAGE, *sorted(list(found)[1:], key=lambda file: -tops[file])]
maps = [found[file] for file in names]"""
_NUMBERS = """\
finite = [values[np.isfinite(values)] for values in maps]
highest = np.array([values.max() if values.size else np.nan for values in finite], np.float32)
mean = np.array([values.mean(dtype=np.float64) if values.size else np.nan for values in finite])
filled = [np.where(np.isfinite(values), values, -np.inf) for values in maps]
place = np.array([divmod(values.argmax(), values.shape[1]) for values in filled])"""
