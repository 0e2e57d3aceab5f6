"""Write the channels on the screen as a PyTorch script that draws the same without HookViz.

>>> code = picture_script(picture_facts_of(model, "cat.jpg", grid))  # doctest: +SKIP
"""

from textwrap import indent

from hookviz.codegen.facts import PictureFacts
from hookviz.codegen.script_text import as_maps, assemble, file_name, quoted
from hookviz.drawing.colormaps import LEVELS
from hookviz.hooking.function_calls import is_function, split_name

_MAP_SIDE = 512  # pixels that one channel's map is magnified to at most


def picture_script(facts: PictureFacts) -> str:
    """Write Python that draws the picture with PyTorch, torchvision, NumPy, matplotlib and Pillow.

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
    parts = (_capture(facts), _choice(facts), _colours(facts), _mosaic(facts), _channel(facts))
    return assemble(head, facts, parts)


def _capture(facts: PictureFacts) -> str:
    """Write ``maps``, what the layer put out for the image."""
    path, call = facts.address.path, facts.address.call
    which = "its first call" if call == 0 else f"its call {call + 1}"
    keys = ", ".join(map(quoted, path)) + ("," if len(path) == 1 else "")
    part, layer = _PART.format(keys=keys) if path else "", facts.address.layer
    if is_function(layer):
        kept = function_capture(layer, indent(part, " " * 8))
    else:
        kept = _HOOK.format(part=part, layer=quoted(layer))
    return kept + _MAPS.format(
        call=call,
        which=which,
        maps=as_maps(facts.layout),
        slice="" if facts.depth is None else f"[:, {facts.depth}]",
        moved=_MOVED if facts.layout.last else "",
    )


_HOOK = """\
# A forward hook sees what a layer puts out. It keeps a copy, since an in-place ReLU that follows
# would write over the original.
outputs = []


def keep(module, inputs, output):
{part}    outputs.append(output.clone())


handle = model.get_submodule({layer}).register_forward_hook(keep)
with torch.no_grad():  # no training, so nothing has to be kept for gradients
    model(batch)
handle.remove()
"""
_MAPS = """\
# What {which} put out for the only image: (channels, height, width).
{moved}maps = outputs[{call}]{maps}[0]{slice}.numpy()
assert np.isfinite(maps).all(), "HookViz draws NaN and infinity, this script does not"\
"""
_MOVED = """\
# The layer itself has its channels last.
"""
_PART = """\
    for key in ({keys}):  # this layer puts out several tensors
        if isinstance(output, dict):
            output = {{str(name): value for name, value in output.items()}}[key]
        else:
            output = output[int(key)] if key.isdecimal() else getattr(output, key)
"""


def function_capture(name: str, part: str) -> str:
    """Write ``outputs``, what each call of the function put out.

    Args:
        name: of the function, as `hookviz.list_layers` has it.
        part: lines that take one tensor of several out of ``output``; empty where it is one.
    """
    function, place = split_name(name)
    return _KEEP.format(function=quoted(function), place=quoted(place), part=part)


_KEEP = """\
# No hook sees what a network's code calls as a function: a mode sees it, and hooks tell where the
# pass is.
outputs, place = [], []


class KeepFunction(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        output = func(*args, **(kwargs or {{}}))
        called = func.__name__.strip("_").removesuffix("_with_indices")
        if place[-1:] == [{place}] and called == {function}:
{part}            outputs.append(output.clone())
        return output


def note_places(name, module):
    module.register_forward_pre_hook(lambda module, inputs: place.append("in " + name))
    module.register_forward_hook(lambda module, inputs, output: place.append("after " + name))


for name, module in model.named_modules():
    note_places(name, module)
with torch.no_grad(), KeepFunction():  # no training, so nothing is kept for gradients
    model(batch)
"""


def _choice(facts: PictureFacts) -> str:
    """Write ``order``, the numbers of the channels to draw, and ``shown``, their maps."""
    if _is_in_layer_order(facts):
        return ""
    top = f"[:{facts.top}]" if facts.top else ""
    if facts.sort == "index":
        return f"order = np.arange(len(maps)){top}  # the first channels\nshown = maps[order]"
    what, key = _SORTS[facts.sort]
    return f"""\
# Channels in order: the highest {what} first, equal ones as they come.
rows = maps.reshape(len(maps), -1).astype(np.float64)
order = np.argsort(-{key}, kind="stable"){top}
shown = maps[order]"""


def _is_in_layer_order(facts: PictureFacts) -> bool:
    """Return whether all channels are drawn in the layer's own order."""
    return facts.sort == "index" and facts.top is None


_SORTS = {
    "max": ("maximum", "rows.max(axis=1)"),
    "mean": ("mean", "rows.mean(axis=1)"),
    "variance": ("variance", "rows.var(axis=1)"),
    "zeros": ("share of zeros", "(rows == 0).mean(axis=1)"),
}


def _colours(facts: PictureFacts) -> str:
    """Write ``levels``, the colour step of each value, and ``colours``, the colour of each."""
    levels = _LEVELS_EACH if facts.scale == "channel" else _LEVELS
    return "\n".join((_SCALES[facts.scale], levels, _COLOURS)).format(
        shown="maps" if _is_in_layer_order(facts) else "shown",
        colormap=quoted(facts.colormap),
        n=LEVELS,
        last=LEVELS - 1,
    )


_SCALES = {
    "layer": """\
# The colours run from the layer's lowest to its highest value, the same in all channels.
low, high = float(maps.min()), float(maps.max())""",
    "channel": """\
# Each channel's colours run from its own lowest to its own highest value.
low = {shown}.min(axis=(1, 2), keepdims=True).astype(np.float64)
high = {shown}.max(axis=(1, 2), keepdims=True).astype(np.float64)""",
    "symmetric": """\
# The colours reach equally far below and above zero, so zero is in the middle.
high = float(np.abs(maps).max()) or 1.0
low = -high""",
    "percentile": """\
# The colours run from the layer's 1st to its 99th percentile, so that a few extreme values don't
# leave all others alike; where these are equal (mostly zeros), from its lowest to its highest.
ranked = np.sort(maps.reshape(-1))
cut = (len(ranked) - 1) // 100
low, high = float(ranked[cut]), float(ranked[-1 - cut])
if low == high:
    low, high = float(ranked[0]), float(ranked[-1])""",
    "balanced": """\
# The colours run from zero to the 99th percentile of all sizes, both ways where values are below
# zero, so that a few extreme values don't leave all others alike.
ranked = np.sort(np.abs(maps).reshape(-1))
high = float(ranked[-(-(len(ranked) - 1) * 99 // 100)]) or float(ranked[-1]) or 1.0
low = -high if maps.min() < 0 else 0.0""",
}
_LEVELS = """\
# {n} steps of colour from low to high, and the end colours beyond.
step = {n} / (high - low) if high > low else 0.0
levels = (({shown} - low) * step).clip(0, {last}).astype(np.uint8)"""
_LEVELS_EACH = """\
# {n} steps of colour from low to high; a channel with one value everywhere has the lowest. Tiny
# ranges need more digits than float32 has.
span = high - low
step = np.divide({n}, span, out=np.zeros_like(span), where=span > 0)
kind = np.float32 if np.min(span, where=span > 0, initial=1) > 1e-30 else np.float64
levels = (({shown} - low.astype(kind)) * step.astype(kind)).clip(0, {last}).astype(np.uint8)"""
_COLOURS = """\
colours = matplotlib.colormaps[{colormap}].resampled({n})(np.arange({n}), bytes=True)  # RGBA"""


def _mosaic(facts: PictureFacts) -> str:
    """Write code that saves the picture of all maps."""
    return _MOSAIC.format(
        columns=facts.columns, cell=facts.magnification, gap=facts.gap, file=_file(facts)
    )


_MOSAIC = """\
# One picture of all maps, row by row, with gaps that are transparent.
COLUMNS = {columns}  # maps side by side
CELL = {cell}  # every value becomes a square of so many pixels
GAP = {gap}  # pixels between the maps
tiles = colours[levels].repeat(CELL, axis=1).repeat(CELL, axis=2)
count, height, width, _ = tiles.shape
down, across = height + GAP, width + GAP
rows = -(-count // COLUMNS)  # rounded up
picture = np.zeros((rows * down - GAP, COLUMNS * across - GAP, 4), np.uint8)
for index, tile in enumerate(tiles):
    row, column = divmod(index, COLUMNS)
    top, left = row * down, column * across
    picture[top : top + height, left : left + width] = tile
Image.fromarray(picture).save({file})
print(f"{{count}} of {{len(maps)}} channels of {{maps.shape[1]}}×{{maps.shape[2]}} values")"""


def _channel(facts: PictureFacts) -> str:
    """Write code that saves the picture of the one channel, if any."""
    if facts.channel is None:
        return ""
    plain = _is_in_layer_order(facts)
    levels = f"levels[{facts.channel}]" if plain else f"levels[order == {facts.channel}][0]"
    return f"""\
# Channel {facts.channel} alone, magnified in whole steps to {_MAP_SIDE} pixels at most.
tile = colours[{levels}]
cell = max(1, {_MAP_SIDE} // max(tile.shape[:2]))
tile = tile.repeat(cell, axis=0).repeat(cell, axis=1)
Image.fromarray(tile).save({_file(facts, f"-channel-{facts.channel}")})"""


def _file(facts: PictureFacts, suffix: str = "") -> str:
    return quoted(file_name(f"{facts.model}-{facts.address}{suffix}", "png"))
