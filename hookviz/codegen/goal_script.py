"""Write pictures of any goal as a script: units, sums over several layers, functions of one's own.

>>> made = hookviz.maximize_activation(model, goal)  # doctest: +SKIP
>>> code = goal_script(made)  # doctest: +SKIP
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from hookviz.capturing.layer_trace import layer_trace
from hookviz.codegen import optimizing
from hookviz.codegen.facts import LensFacts, lens_facts_of
from hookviz.codegen.lens_script import FORWARD, in_order
from hookviz.codegen.script_text import as_maps, assemble, quoted, source_of
from hookviz.errors import SettingError
from hookviz.hooking.device import with_numbers
from hookviz.language.saying import joined, say
from hookviz.paths import path_ending_in, write_file
from hookviz.synthesis.composing import FunctionObjective, ObjectiveSum, counted
from hookviz.synthesis.goals import spread, weighted_sum
from hookviz.synthesis.maximizing import AnyObjective, MaximizationResult
from hookviz.synthesis.optimizing import diversity_penalty, total_variation
from hookviz.synthesis.settings import NONE, moved

_KNOWN = {"torch", "math", "nn"}  # what a function may use beside its argument
_WIDTH = 100 - len("    return ")
_RATES = {"Fourier": 0.05, "MACO": 0.1}


@with_numbers
def save_script(made: MaximizationResult, path: str | PathLike[str]) -> Path:
    """Save how pictures were made as a script in plain PyTorch, and return its path.

    Run where its weights are, it makes the same pictures from the same seeds without HookViz,
    writes them as PNG files beside itself and prints what each goal comes to: the same to rounding,
    which grows with the steps. Goals of one's own stand in it as they were written.

    Args:
        made: from `maximize_activation`, of units, sums of goals or functions.
        path: ends in ``.py``.

    Raises:
        SettingError: the path ends in something else or can't be written; or a function can't stand
            in a script: it is no ``def``, or uses more than its argument and ``torch``, ``math``
            and ``nn``.

    >>> import tempfile
    >>> model = hookviz.load_model("shapesnet")
    >>> goal = hookviz.Objective.of_channel("stage3.second.conv", 5)
    >>> config = hookviz.MaximizationConfig(size=64)
    >>> made = hookviz.maximize_activation(model, goal, steps=2, method=config)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = hookviz.save_script(made, f"{folder}/goal.py")
    ...     "import hookviz" in path.read_text("utf-8")
    False
    """
    file = path_ending_in(path, (".py",), SettingError)
    write_file(file, goal_script(made).encode(), SettingError)
    return file


def goal_script(made: MaximizationResult) -> str:
    """Return the script of `save_script`.

    Raises:
        SettingError: a function of one's own can't stand in a script.
    """
    method, model = made.method, made.model
    functions = _functions(made.objectives)
    facts = _facts(made)
    is_moved, maco = method.robustness != NONE, method.space == "MACO"
    variation = method.penalty == "total variation"
    costs = [_PENALTIES[method.penalty].format(10 * method.strength)]
    costs *= method.penalty != "none"
    is_diverse = bool(method.diversity) and len(made.pictures) > 1
    if is_diverse:
        costs += [f"{method.diversity} * {_DIVERSITY}"]
    loss = f"-(torch.tensor(SIGNS) * values{' / unit' if costs else ''}).sum()"
    units = " + ".join(_units(made.objectives[0]))
    spreads = bool(costs) and "spread(" in units
    lines = [
        f"STEPS = {made.steps}  # {optimizing.STEPS_SAYS}",
        f"SEED = {method.seed}  # of how the pictures are moved before each step" * is_moved,
        f"SEEDS = {made.seeds}  # of each picture's noise",
        f"SIGNS = {tuple(1 if each.rises else -1 for each in made.objectives)}"
        "  # of each picture: 1 for a goal that is to rise, -1 for one that is to fall",
        f"SIZE = {made.pictures[0].shape[:2]}  # rows and columns of pixels",
        optimizing.as_input(facts),
        optimizing.maco(facts) if maco else optimizing.fourier(),
        source_of(moved) if is_moved else "",
        FORWARD,
        _OUTPUT_OF.format(
            names="".join(f", {quoted(each)}" for each in made.objectives[0].layers if each),
            layers=_layers(made, facts),
        ),
        source_of(weighted_sum) if any(_has_weights(each) for each in made.objectives) else "",
        source_of(*functions) if functions else "",
        *(_goal(number, each) for number, each in enumerate(_distinct(made.objectives))),
        _VALUES_OF.format(goals=_goals(made.objectives)),
        source_of(spread) if spreads else "",
        source_of(total_variation) if variation else "",
        source_of(diversity_penalty) if is_diverse else "",
        "" if maco else optimizing.noise(facts),
        optimizing.optimize(
            f"{_RATES[method.space] * method.rate:g}",
            steady=is_moved,
            robustness=method.robustness,
            before=_UNIT.format(unit=units) if costs else "",
            loss=[loss, *costs],
        ),
        optimizing.levels(facts),
        _SAVED,
    ]
    head = (
        f"# What goals of one's own look for in the network {quoted(model.title)}: pictures that\n"
        "# climb from noise, made without HookViz."
    )
    return assemble(head, facts, (in_order(*lines),))


def _facts(made: MaximizationResult) -> LensFacts:
    shape = (made.model_shape[0], *made.pictures[0].shape[:2])
    chosen = {"layer": next((layer for layer in made.objectives[0].layers if layer), None)}
    result = _Result("maximize", chosen, {"pictures": made.pictures})
    return lens_facts_of(made.model, "", result, shape=shape)


class _Result(NamedTuple):
    """Pictures of a goal, as the lens that makes such pictures has them."""

    lens: str
    chosen: Mapping[str, Any]
    values: Mapping[str, Any]


def _layers(made: MaximizationResult, facts: LensFacts) -> str:
    """Write what each layer put out as maps, a line each."""
    shapes = {info.name: info.output_shape for info in layer_trace(made.model, facts.shape).every}
    lines = []
    for layer in made.objectives[0].layers:
        if layer is None:
            lines.append("        None: scores[:, :, None, None],\n")
            continue
        name, layout = quoted(layer), facts.layouts.get(layer)
        code = f"outputs[{name}]{as_maps(layout) if layout else ''}"
        code += "[:, :, None, None]" * (len(shapes.get(layer, (0, 0, 0))) < 2)
        lines.append(f"        {name}: {code},\n")
    return "".join(lines)


def _distinct(objectives: tuple[AnyObjective, ...]) -> tuple[AnyObjective, ...]:
    return tuple(dict.fromkeys(objectives))


def _goals(objectives: tuple[AnyObjective, ...]) -> str:
    numbers = {each: number for number, each in enumerate(_distinct(objectives))}
    return ", ".join(f"goal_{numbers[each]}" for each in objectives)


def _goal(number: int, objective: AnyObjective) -> str:
    """Write a goal as a function of one picture's outputs."""
    lines = list[str]()
    for weight, code in _terms(objective):
        sign = "-" if weight < 0 else "+"
        counts = "" if abs(weight) == 1 else f"{abs(weight)} * "
        lines.append(f"{sign} {counts}{code}" if lines else f"{sign.strip('+')}{counts}{code}")
    value = " ".join(lines)
    if len(value) > _WIDTH:
        value = "\n        ".join(("(", *lines)) + "\n    )"
    return _GOAL.format(number=number, value=value)


def _terms(objective: Any) -> Iterator[tuple[float, str]]:
    """Yield what each part of a goal counts, and its code."""
    if isinstance(objective, ObjectiveSum):
        for weight, goal in objective.terms:
            ((one, code),) = _terms(goal)
            yield one * counted(weight, goal), code
    elif isinstance(objective, FunctionObjective):
        yield 1.0, f"{objective.function.__name__}(outputs)"
    else:
        layer = "None" if objective.layer is None else quoted(objective.layer)
        code = f"weighted_sum(outputs[{layer}], {objective.weights}, {objective.cell})"
        yield 1.0, code if objective.weights else f"outputs[{layer}].square().mean()"


def _units(objective: Any) -> Iterator[str]:
    """Yield the parts of a goal's unit."""
    if isinstance(objective, ObjectiveSum):
        for weight, goal in objective.terms:
            yield from (f"{abs(weight):g} * {unit}" for unit in _units(goal))
    elif isinstance(objective, FunctionObjective):
        yield "1"
    else:
        yield f"spread(output[{'None' if objective.layer is None else quoted(objective.layer)}])"


def _has_weights(objective: Any) -> bool:
    return "weighted_sum(" in "".join(code for _, code in _terms(objective))


def _functions(objectives: tuple[AnyObjective, ...]) -> tuple[Callable[..., Any], ...]:
    """Return the functions of one's own, each once, which can all stand in a script."""
    found: dict[str, Callable[..., Any]] = {}
    for objective in objectives:
        terms = objective.terms if isinstance(objective, ObjectiveSum) else ((1.0, objective),)
        for _, goal in terms:
            if isinstance(goal, FunctionObjective):
                _check(goal.function)
                name = goal.function.__name__
                if found.setdefault(name, goal.function) is not goal.function:
                    raise SettingError(
                        say("Two goals are called {name!r}: a script needs two names.", name=name)
                    )
    return tuple(found.values())


def _check(function: Any) -> None:
    """Check that a function's source can stand in a script.

    Raises:
        SettingError: it can't.
    """
    name = getattr(function, "__name__", type(function).__name__)
    if not inspect.isfunction(function) or name == "<lambda>":
        raise SettingError(
            say("The goal {name!r} can't stand in a script: write it with def.", name=name)
        )
    try:
        inspect.getsource(function)
    except OSError as error:
        raise SettingError(
            say(
                "The source of the goal {name!r} is not there, so a script can't have it: write "
                "it in a file or a notebook.",
                name=name,
            )
        ) from error
    used = inspect.getclosurevars(function)
    if others := sorted({*used.globals, *used.nonlocals} - _KNOWN):
        raise SettingError(
            say(
                "The goal {name!r} uses {others}, which a script would not have: put that into "
                "the function. torch, math and nn are there.",
                name=name,
                others=joined([quoted(other) for other in others]),
            )
        )


_OUTPUT_OF = '''

def output_of(inputs):
    """What each layer puts out for each input, (N, C, rows, columns); None for the scores."""
    scores, outputs = forward(inputs{names})
    return {{
{layers}    }}

'''
_GOAL = '''

def goal_{number}(outputs):
    """The goal of a picture, one number, of its outputs, (C, rows, columns) of each layer."""
    return {value}

'''
_VALUES_OF = """

def values_of(output):  # a number for each picture, (N,)
    goals = [{goals}]
    of_each = [{{layer: maps[n] for layer, maps in output.items()}} for n in range(len(goals))]
    return torch.stack([goal(outputs) for goal, outputs in zip(goals, of_each, strict=True)])

"""
_PENALTIES = {
    "none": "",
    "total variation": "{:g} * total_variation(pictures)",
    "L2": "{:g} * (pictures - 0.5).square().mean((1, 2, 3)).sum()",
}
_DIVERSITY = "sum(diversity_penalty(maps) for maps in output.values()) / len(output)"
_UNIT = """\
    if step == 0:  # goals count in units of their layers' spread, so a cost means the same in all
        with torch.no_grad():
            unit = {unit}
"""
_SAVED = """\
for number, (picture, value) in enumerate(zip(shown, values.tolist(), strict=True)):
    print(number, value)
    Image.fromarray(picture).save(f"goal-{number}.png")"""
