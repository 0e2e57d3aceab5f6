"""Activation maximisation: pictures that climb from noise towards what a unit answers to."""

from hookviz.codegen import optimizing, picture_space
from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import LensCode, constants, in_order, one_line

_CLASSES = ("a class", "classes with weights")


def code(recipe: LensRecipe) -> LensCode:
    """The pictures of every goal, from its seed; as many steps as were done."""
    chosen = recipe.chosen
    steady, maco = bool(chosen["steady"]), chosen["space"] == "MACO"
    of_class = chosen["of"] in _CLASSES
    cell = not of_class and chosen["row"] >= 0 and len(recipe.output) > 2
    costs = [_PENALTIES[chosen["penalty"]]] if chosen["penalty"] != "none" else []
    diverse = bool(chosen["pictures"] > 1 and chosen["diversity"])
    lines = [
        "" if of_class else constants(recipe, layer=""),
        f"STEPS = {recipe.values['history'][0]}  # {optimizing.STEPS_SAYS}",
        constants(recipe, seed="of how the pictures are moved before each step") if steady else "",
        f"SIZE = {recipe.values['pictures'][1:3]}  # rows and columns of pixels",
        constants(recipe, row="of the cell that counts", column="of it") if cell else "",
        constants(recipe, strength="of the penalty") if costs else "",
        constants(recipe, diversity="how much the pictures avoid each other") if diverse else "",
        _goals_and_names(recipe, of_class=of_class),
        optimizing.as_input(recipe),
        picture_space.maco(recipe) if maco else picture_space.fourier(recipe),
        optimizing.moved() if steady else "",
        optimizing.output_of(of="scores" if of_class else "LAYER"),
        _values(recipe, cell=cell, of_class=of_class),
        optimizing.VARIATION if _VARIATION in costs else "",
        _ALIKE if diverse else "",
        "" if maco else picture_space.noise(recipe),
    ]
    costs += ["DIVERSITY * diversity_penalty(output)"] if diverse else []
    loss = "-(SIGNS * values / unit).sum()" if costs else "-(SIGNS * values).sum()"
    before = _UNIT if costs else ""
    rate = "0.1" if maco else "0.05"
    lines += [optimizing.climb(rate, steady=steady, before=before, loss=[loss, *costs])]
    lines += [optimizing.levels(recipe)]
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


def _goals_and_names(recipe: LensRecipe, *, of_class: bool) -> str:
    """A line for each picture, below what its classes are called."""
    goals, names = _goals(recipe), recipe.categories
    classes = dict.fromkeys(each for _, weights, _ in goals for each in weights) if of_class else ()
    single, what = _single(recipe), "class" if of_class else "channel"
    each = [(seed, next(iter(wants)) if single else wants, sign) for seed, wants, sign in goals]
    return _GOALS.format(
        what=f"the {what}" if single else f"what each {what} counts",
        names="".join(f"# Class {k}: {one_line(names[k])}.\n" for k in classes if k < len(names)),
        goals="".join(f"    {goal},\n" for goal in each),
        wants=_wants(recipe, of_class=of_class),
    )


def _single(recipe: LensRecipe) -> bool:
    """Whether each picture is for one channel or class, which counts as it is."""
    return all(list(weights.values()) == [1.0] for _, weights, _ in _goals(recipe))


def _wants(recipe: LensRecipe, *, of_class: bool) -> str:
    """What the script calls that which pictures are for."""
    return ("CLASSES" if of_class else "CHANNELS") if _single(recipe) else "WEIGHTS"


def _values(recipe: LensRecipe, *, cell: bool, of_class: bool) -> str:
    """Makes ``values_of``."""
    number = "class's score" if of_class else "channel's cell" if cell else "channel's mean"
    index = "target" if of_class else "channel"
    value = {"class's score": "scores[target]", "channel's cell": "maps[channel, ROW, COLUMN]"}
    single = _single(recipe)
    return (_VALUES if single else _SUMS).format(
        number=number,
        index=index,
        value=value.get(number, "maps[channel].mean()"),
        maps="scores" if of_class else "maps",
        wants=_wants(recipe, of_class=of_class),
    )


_GOALS = """\
# For each picture: the seed of its noise, {what}, and 1 to rise or -1 to fall.
{names}GOALS = [
{goals}]
SEEDS, {wants}, SIGNS = zip(*GOALS, strict=True)
SIGNS = torch.tensor(SIGNS)
"""
_VALUES = '''

def values_of(output):
    """The {number} for each picture, (N,)."""
    pairs = zip(output, {wants}, strict=True)
    return torch.stack([{value} for {maps}, {index} in pairs])

'''
_SUMS = '''

def value_of({maps}, weights):
    """Each {number} times what it counts, added up."""
    return sum(count * {value} for {index}, count in weights.items())


def values_of(output):
    """That sum for each picture, (N,)."""
    return torch.stack([value_of(*pair) for pair in zip(output, WEIGHTS, strict=True)])

'''
_VARIATION = "10 * STRENGTH * variation(pictures)"
_PENALTIES = {
    "total variation": _VARIATION,
    "L2": "10 * STRENGTH * (pictures - 0.5).square().mean((1, 2, 3)).sum()",
}
_UNIT = """\
    if step == 0:  # goals count in units of the layer's spread, so a cost means the same in all
        unit = output.detach().flatten(1).std(1, correction=0)
"""
_ALIKE = '''

def diversity_penalty(output):
    """The mean cosine of the pictures' Gram matrices, times their number (Olah et al., 2017)."""
    flat = output.flatten(2) if output.ndim > 2 else output[:, :, None]
    gram = (flat @ flat.transpose(1, 2)).flatten(1)
    gram = gram / gram.norm(dim=1, keepdim=True)
    cosines = gram @ gram.T
    return (cosines.sum() - cosines.trace()) / (len(output) - 1)

'''
