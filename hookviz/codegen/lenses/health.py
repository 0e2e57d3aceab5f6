"""Health: NaN, infinities, dead and saturated units, and how large numbers are."""

from dataclasses import replace

from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import TENSORS_IN, LensCode, constants, in_order, layers


def code(recipe: LensRecipe) -> LensCode:
    """Every tensor that the layers put out, looked at as it comes."""
    last = recipe.convs[-1] if recipe.convs else recipe.runs[-1]
    chosen = recipe.chosen["layer"]
    named = replace(recipe, chosen={"layer": chosen or last})
    picked = _CHOSEN if chosen else _FIRST_BAD
    lines = (constants(named, layer="of the histogram"), layers(recipe), TENSORS_IN, _WATCH, picked)
    names = ("nan", "inf", "largest", "growth", "units", "dead", "saturated")
    values = {name: f'[row["{name}"] for row in rows]' for name in names}
    return in_order(*lines), values | {"histogram": "histogram", "edges": "edges"}


_WATCH = '''
def largest_of(values):
    """Max |x| of the finite values; 0 without any."""
    finite = values[values.isfinite()]
    return finite.abs().max().item() if finite.numel() else 0.0


# These put out what they are given.
NO_UNITS = {"Flatten", "Permute", "Identity", "Dropout", "Dropout2d", "StochasticDepth"}
shape, channels_last = (), False  # of what the layer before put out


def count_units(module, values):
    """How many channels there are, or numbers of a vector, and how many of them say nothing."""
    global shape, channels_last
    if isinstance(module, nn.Linear) or type(module) is nn.LayerNorm:
        channels_last = True
    elif values.shape != shape or isinstance(module, nn.modules.conv._ConvNd):
        channels_last = False  # else as in the layer before, whose shape it has
    shape = values.shape
    if type(module).__name__ in NO_UNITS or not shape:
        return 0, 0
    channels = values.movedim(-1 if channels_last else 0, 0)
    channels = channels.reshape(len(channels), -1)
    dead = (channels == 0).all(1)
    if channels.shape[1] >= 9:  # a pooling window may cover all of fewer cells
        dead |= channels.amax(1) == channels.amin(1)  # the same value everywhere
    return len(channels), dead.sum().item()


def share_saturated(module, values):
    """The share within 1 % of an end of the range; NaN for layers without a bounded range."""
    if isinstance(module, (nn.Sigmoid, nn.Hardsigmoid)):
        low, high = 0.0, 1.0
    elif isinstance(module, (nn.Tanh, nn.Softsign)):
        low, high = -1.0, 1.0
    elif isinstance(module, nn.Hardtanh) and not isinstance(module, nn.ReLU6):
        low, high = float(module.min_val), float(module.max_val)
    else:
        return np.nan
    end = 0.01 * (high - low)
    return ((values < low + end) | (values > high - end)).float().mean().item()


rows, kept = [], {}  # a row for each tensor of each call, and all numbers of some layers
names = {module: name for name, module in layers.items()}
taken_in = {}  # max |x|


def before(module, inputs):  # it may work in place, so its input is looked at now
    taken_in[module] = max(map(largest_of, tensors_in(inputs)), default=np.nan)


def after(module, inputs, output):
    given = taken_in.pop(module)
    for tensor in tensors_in(output):
        if not tensor.is_floating_point() or not tensor.numel():
            continue
        values = tensor[0] if tensor.ndim > 1 and len(tensor) == 1 else tensor
        units, dead = count_units(module, values)
        largest = largest_of(values)
        row = {
            "layer": names[module],
            "nan": values.isnan().sum().item(),
            "inf": values.isinf().sum().item(),
            "largest": largest,
            "growth": largest / given if given else np.nan,
            "units": units,
            "dead": dead,
            "saturated": share_saturated(module, values),
        }
        if row["layer"] == LAYER or row["nan"] or row["inf"]:
            kept.setdefault(row["layer"], values.flatten().clone().numpy())
        rows.append(row)


for module in layers.values():
    module.register_forward_pre_hook(before)
    module.register_forward_hook(after)
with torch.no_grad():
    model(batch)'''
_CHOSEN = """\
finite = kept[LAYER][np.isfinite(kept[LAYER])].astype(np.float64)
histogram, edges = np.histogram(finite, 48)"""
_FIRST_BAD = """\
# The layer where NaN and infinities begin comes first.
bad = [row["layer"] for row in rows if row["nan"] or row["inf"]]
values = kept[bad[0] if bad else LAYER]
histogram, edges = np.histogram(values[np.isfinite(values)].astype(np.float64), 48)"""
