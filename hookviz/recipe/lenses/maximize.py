"""Activation maximisation: pictures that climb from noise towards what a unit answers to."""

from hookviz.recipe import climbing
from hookviz.recipe.lens_facts import LensRecipe
from hookviz.recipe.lens_parts import LensCode, constants, in_order, one_line

_CLASSES = ("a class", "classes with weights")


def code(recipe: LensRecipe) -> LensCode:
    """The pictures of every goal, from its seed; as many steps as were done."""
    chosen, goals = recipe.chosen, _goals(recipe)
    steps = recipe.values["history"][0]
    steady, maco = bool(chosen["steady"]), chosen["space"] == "MACO"
    of_class = chosen["of"] in _CLASSES
    cell = not of_class and chosen["row"] >= 0 and len(recipe.output) > 2
    diverse = bool(chosen["pictures"] > 1 and chosen["diversity"])
    penalty = _PENALTIES[chosen["penalty"]]
    listed = "\n".join(f"    {goal}," for goal in goals)
    lines = [
        "" if of_class else constants(recipe, layer=""),
        f"STEPS = {steps}  # {climbing.STEPS_SAYS}",
        constants(recipe, seed="of how the pictures are moved before each step") if steady else "",
        f"SIZE = {recipe.values['pictures'][1:3]}  # rows and columns of pixels",
        constants(recipe, row="", column="of the cell that counts") if cell else "",
        constants(recipe, strength="of the penalty") if penalty else "",
        constants(recipe, diversity="how much the pictures avoid each other") if diverse else "",
        _GOALS.format(
            goals=listed,
            what="classes" if of_class else "channels",
            names=_names(recipe) if of_class else "",
        ),
        climbing.as_input(recipe),
        climbing.maco(recipe) if maco else climbing.fourier(recipe),
        climbing.moved() if steady else "",
        climbing.output_of(of="scores" if of_class else "LAYER"),
        _VALUES.format(
            what=f"The {'cell' if cell else 'mean'} of a map",
            value="maps[channel, ROW, COLUMN]" if cell else "maps[channel].mean()",
        ),
        climbing.VARIATION if penalty == _VARIATION else "",
        _ALIKE if diverse else "",
        "" if maco else climbing.noise(recipe, "SEEDS"),
    ]
    costs = [penalty, "DIVERSITY * alikeness(output)" if diverse else ""]
    cost = "".join(f" + {each}" for each in costs if each)
    lines += [
        climbing.climb(
            "0.1" if maco else "0.05",
            steady=steady,
            before=_UNIT if cost else "",
            loss=f"-(SIGNS * values{' / unit' if cost else ''}).sum(){cost}",
        ),
        climbing.levels(recipe),
    ]
    return in_order(*lines), {
        "pictures": "shown",
        "values": "values.double().numpy()",
        "history": "np.array(history)",
        "noise": "np.array(history[0])",
    }


def _goals(recipe: LensRecipe) -> list[tuple[int, dict[int, float], int]]:
    """For each picture the seed, what each channel counts, and whether that is to rise."""
    chosen = recipe.chosen
    signs = {"what excites it": (1,), "what silences it": (-1,), "both": (1, -1)}[chosen["aim"]]
    many = recipe.values["values"][0] // (len(signs) * chosen["pictures"])
    weights: list[dict[int, float]] = {
        "a channel": [{chosen["channel"]: 1.0}],
        "channels side by side": [{each: 1.0} for each in chosen["channels"] or range(many)],
        "channels with weights": [dict(chosen["weights"])],
        "a class": [{chosen["target"] or 0: 1.0}],
        "classes with weights": [dict(chosen["weights"])],
    }[chosen["of"]]
    seeds = [(chosen["seed"] + number) % 2**31 for number in range(chosen["pictures"])]
    return [(seed, each, sign) for sign in signs for each in weights for seed in seeds]


def _names(recipe: LensRecipe) -> str:
    """What the classes are called, as comments."""
    names = recipe.categories
    classes = dict.fromkeys(index for _, weights, _ in _goals(recipe) for index in weights)
    return "".join(
        f"# Class {index} is {one_line(names[index])}.\n" for index in classes if index < len(names)
    )


_GOALS = """\
# For each picture: the seed of its noise, {what} with what each counts, and whether their sum is to
# rise (1) or to fall (-1).
{names}GOALS = [
{goals}
]
SEEDS, WEIGHTS, SIGNS = zip(*GOALS, strict=True)
SIGNS = torch.tensor(SIGNS)"""
_VALUES = '''

def values_of(output):
    """What each picture's goal comes to, (N,). {what} is what a channel has."""
    return torch.stack(
        [
            sum(count * {value} for channel, count in weights.items())
            for maps, weights in zip(output, WEIGHTS, strict=True)
        ]
    )

'''
_VARIATION = "10 * STRENGTH * variation(pictures)"
_PENALTIES = {
    "none": "",
    "total variation": _VARIATION,
    "L2": "10 * STRENGTH * (pictures - 0.5).square().mean((1, 2, 3)).sum()",
}
_UNIT = """\
    if step == 0:  # goals count in units of the layer's spread, so a cost means the same in all
        unit = output.detach().flatten(1).std(1, correction=0)
"""
_ALIKE = '''

def alikeness(output):
    """The mean cosine of the pictures' Gram matrices, times their number (Olah et al., 2017)."""
    flat = output.flatten(2) if output.ndim > 2 else output[:, :, None]
    gram = (flat @ flat.transpose(1, 2)).flatten(1)
    gram = gram / gram.norm(dim=1, keepdim=True)
    cosines = gram @ gram.T
    return (cosines.sum() - cosines.trace()) / (len(output) - 1)

'''
