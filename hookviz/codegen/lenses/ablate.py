"""Switch channels off: a layer's channels edited, and what the network says and computes then."""

from dataclasses import replace

from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import LensCode, constant, constants, in_order


def code(recipe: LensRecipe) -> LensCode:
    """Scores and maps before and after the edit."""
    later = recipe.chosen["downstream"] or _next(recipe)
    mode, channels = str(recipe.chosen["mode"]), list(recipe.chosen["channels"])
    recipe = replace(recipe, chosen={**recipe.chosen, "downstream": later, "channels": channels})
    lines = [constants(recipe, layer="whose channels are edited")]
    lines += [constant(recipe, "downstream", "which is watched")] if later else []
    lines += [constants(recipe, **_ASKED.get(mode, {}))] if mode in _ASKED else []
    names = "(LAYER, DOWNSTREAM)" if later else "(LAYER,)"
    lines += [_RECORD.format(names=names)]
    if channels:
        lines += [constant(recipe, "channels")]
    else:
        lines += [_ALL if mode == "threshold" else _STRONGEST]
    lines += [_EDIT.format(edit=_EDITS[mode])]
    values = {"channels": "CHANNELS"}
    for when in ("before", "after"):
        values[f"logits_{when}"] = f"logits_{when}.numpy()"
        values[f"probabilities_{when}"] = f"logits_{when}.softmax(0).numpy()"
        values[when] = f"maps_{when}[LAYER]"
        if later:
            values[f"downstream_{when}"] = f"maps_{when}[DOWNSTREAM]"
    return in_order(*lines), values


def _next(recipe: LensRecipe) -> str | None:
    """The conv layer that runs next."""
    after = recipe.convs.index(recipe.chosen["layer"]) + 1
    return recipe.convs[after] if after < len(recipe.convs) else None


_ASKED = {
    "scale": {"factor": "that the channels are multiplied by"},
    "threshold": {"limit": "up to which |x| becomes 0"},
}
_RECORD = '''NAMES = {names}


def run():
    """The scores before the softmax, and what the layers put out in their first calls."""
    maps = {{}}

    def keep_as(name):
        def keep(module, inputs, output):  # a copy: an in-place ReLU may write over it
            maps.setdefault(name, output[0].clone().numpy())

        return keep

    handles = [model.get_submodule(name).register_forward_hook(keep_as(name)) for name in NAMES]
    with torch.no_grad():
        logits = model(batch)[0]
    for handle in handles:
        handle.remove()
    return logits, maps


logits_before, maps_before = run()'''
_STRONGEST = """\
# None was chosen: the strongest one, by mean |x|.
strength = np.abs(maps_before[LAYER].astype(np.float64)).mean((1, 2))
CHANNELS = [strength.argmax()]"""
_ALL = "CHANNELS = list(range(len(maps_before[LAYER])))"
_EDIT = """\


def edit(module, inputs, output):
    output = output.clone()
{edit}
    return output  # what a hook returns takes the output's place


# Hooks run in the order in which they were registered: what is kept after this one is edited.
model.get_submodule(LAYER).register_forward_hook(edit)
logits_after, maps_after = run()"""
_EDITS = {
    "switch off": "    output[:, CHANNELS] = 0",
    "keep only": """\
    others = [channel for channel in range(output.shape[1]) if channel not in CHANNELS]
    output[:, others] = 0""",
    "scale": "    output[:, CHANNELS] *= FACTOR",
    "threshold": """\
    weak = output[:, CHANNELS].abs() <= LIMIT
    output[:, CHANNELS] = output[:, CHANNELS].masked_fill(weak, 0)""",
}
