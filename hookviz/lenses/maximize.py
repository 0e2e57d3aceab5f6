"""Show what a channel or class looks for: pictures optimised from noise to excite it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hookviz.codegen import optimizing
from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import constants, in_order, one_line
from hookviz.codegen.script_text import source_of
from hookviz.drawing.panels import ImagePanel, Panel, TextPanel
from hookviz.drawing.pictures import enlarged
from hookviz.errors import SettingError
from hookviz.language.saying import mark, say, say_count
from hookviz.lenses.contract.beside_random import BESIDE_RANDOM
from hookviz.lenses.contract.lens import SEES, Lens, LensOutput, Preview, Subject, how_note
from hookviz.lenses.contract.parameters import (
    ChannelChoice,
    Channels,
    ClassChoice,
    LayerChoice,
    OneOf,
    RealNumber,
    Switch,
    WholeNumber,
)
from hookviz.lenses.contract.shared_choices import (
    cell_choice,
    chosen_cell,
    seed_choice,
    step_callback,
    steps_choice,
)
from hookviz.synthesis.goals import Objective, weighted_sum
from hookviz.synthesis.maximizing import STEPS, begin
from hookviz.synthesis.optimizing import (
    Optimization,
    diversity_penalty,
    run_resumed,
    total_variation,
)
from hookviz.synthesis.settings import NONE, PENALTIES, SLIGHT, SPACES, MaximizationConfig, moved
from hookviz.wording import byte_size, number

_MOST_WEIGHTS = 1000  # numbers with weights in one value
_WANTED = mark('numbers with weights such as "12, 80:-1", a weight of 1 where none is given')
_PART = re.compile(r"\s*(\d{1,6})\s*(?::\s*([+-]?\d{0,9}(?:\.\d{1,9})?))?\s*", re.ASCII)

CHANNEL, SEVERAL, DIRECTION, CLASS, CLASSES = OF = (
    *(mark("a channel"), mark("channels side by side"), mark("channels with weights")),
    *(mark("a class"), mark("classes with weights")),
)

EXCITES, SILENCES, BOTH = AIMS = mark("what excites it"), mark("what silences it"), mark("both")
_OF_LAYER = (CHANNEL, SEVERAL, DIRECTION)
_SEVERAL = 9  # channels side by side where none are named
_MOST = 36
_SMALL = 80  # pixels a side of several pictures at once, at most


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights(Channels):
    """Channels or classes by number, with weights: ``"12, 80:-1"`` or a mapping; none by default.

    Whether there are such is for the lens to check.
    """

    name: str = "weights"
    label: str = mark("Weights")
    example: str = "12, 80:-1"

    def resolve(self, value: Any, subject: Subject) -> tuple[tuple[int, float], ...]:  # type: ignore[override]
        """Return pairs of number and weight in the order of the numbers, each number once.

        Raises:
            SettingError: the value is no list of weights, or names too many.
        """
        if value is None or value == "":
            return ()
        if isinstance(value, Mapping):
            return self.resolve(", ".join(f"{key}:{each}" for key, each in value.items()), subject)
        if isinstance(value, tuple | list):  # as it was resolved before
            return self.resolve(", ".join(f"{key}:{each}" for key, each in value), subject)
        parts = str(value).split(",")
        weights: dict[int, float] = {}
        for part in parts:
            match = _PART.fullmatch(part)
            if match is None or len(parts) > _MOST_WEIGHTS or int(match[1]) in weights:
                raise self.refuse(value, say(_WANTED))
            try:
                weights[int(match[1])] = 1.0 if match[2] is None else float(match[2])
            except ValueError:
                raise self.refuse(value, say(_WANTED)) from None
        return tuple(sorted(weights.items()))


@dataclass(frozen=True, slots=True)
class _Choice:
    """The lens's parameters as chosen, and the objectives and method that follow from them."""

    of: str
    layer: str
    channel: int
    row: int
    column: int
    channels: tuple[int, ...]
    weights: tuple[tuple[int, float], ...]
    target: int | None
    aim: str
    steps: int
    side: int
    seed: int
    space: str
    pictures: int
    diversity: float
    penalty: str
    strength: float
    steady: bool

    def objectives(self, subject: Subject) -> tuple[Objective, ...]:
        """Return one objective for each picture, or for each group of `pictures`."""
        rising = self._rising(subject)
        silencing = tuple(replace(objective, rises=False) for objective in rising)
        return {EXCITES: rising, SILENCES: silencing, BOTH: (*rising, *silencing)}[self.aim]

    def _rising(self, subject: Subject) -> tuple[Objective, ...]:
        if self.of == CHANNEL:
            return (Objective.of_channel(self.layer, self.channel, self._cell),)
        if self.of == SEVERAL:
            return tuple(
                Objective.of_channel(self.layer, channel, self._cell)
                for channel in self._channels(subject)
            )
        if self.of == CLASS:
            if self.target is None:
                subject.scored  # noqa: B018 - says that there are no scores
            return (Objective.of_class(self.target or 0),)
        if not self.weights:
            raise SettingError(
                say("For {goal} write the weights, such as '12, 80:-1'.", goal=self.of)
            )
        if self.of == CLASSES:
            return (Objective(None, self.weights),)
        return (Objective(self.layer, self.weights, self._cell),)

    @property
    def _cell(self) -> tuple[int, int] | None:
        return chosen_cell(self.row, self.column)

    def _channels(self, subject: Subject) -> tuple[int, ...]:
        if self.channels:
            return self.channels[: _MOST + 1]  # one too many is refused in `run`
        info = next(info for info in subject.trace.every if info.name == self.layer)
        return tuple(range(min(_SEVERAL, info.output_shape[0])))

    def method(self, many: int, least: int) -> MaximizationConfig:
        """Return the method for `many` pictures of a network that takes `least` pixels a side."""
        return MaximizationConfig(
            size=self.side if many == 1 else min(self.side, max(_SMALL, least)),
            seed=self.seed,
            space=self.space,
            robustness=SLIGHT if self.steady else NONE,
            penalty=self.penalty,
            strength=self.strength,
            diversity=self.diversity if self.pictures > 1 else 0.0,
        )


def run(subject: Subject, **chosen: Any) -> LensOutput:
    """Make pictures by activation maximisation, see `hookviz.maximize_activation`.

    Values are ``pictures`` ``(N, H, W, 3)`` uint8, ``values`` ``(N,)``: what each objective comes
    to on its picture, ``history`` ``(steps, N)``: in each step, on the disturbed picture, and
    ``noise`` ``(N,)``: in the first step, on what was begun with.

    Raises:
        SettingError: there is no such channel, class or cell, or too many are asked for.
        ModelError: nothing can be optimised, for want of a gradient; it names a layer that has one.
    """
    choice = _Choice(**chosen)
    objectives = choice.objectives(subject)
    many = len(objectives) * choice.pictures
    if many > _MOST:
        raise SettingError(
            say(
                "{count} pictures at once are too many: {limit} are made at most.",
                count=many,
                limit=_MOST,
            )
        )
    method = choice.method(many, subject.model.min_size)
    optimization = begin(subject.model, objectives, method, choice.pictures)

    def show(now: Optimization) -> None:
        subject.partial(_output(subject, choice, now, now.values))

    key = ("optimization", subject.model.cache_key, objectives, choice.pictures, method)
    run_resumed(
        optimization, choice.steps, subject.cache, key, step_callback(subject, choice.steps, show)
    )
    return _output(subject, choice, optimization, optimization.measured())


def _output(
    subject: Subject, choice: _Choice, optimization: Optimization, values: Sequence[float]
) -> LensOutput:
    """Return the panels and numbers so far; the panels are the same at every step."""
    pictures, first = optimization.pictures(), optimization.history[0]
    goals = [goal for goal in optimization.goals if isinstance(goal, Objective)]
    answer = say(
        "{goal} goes from {first_value} in noise to {last_value} in this picture.",
        goal=_title(subject, goals[0], both=False),
        first_value=number(first[0]),
        last_value=number(values[0]),
    )
    panels: list[Panel] = [
        TextPanel(answer, "answer"),
        TextPanel(
            say_count(
                "Step {steps} of {all_steps}, seed {seed}, {space}: a picture of "
                "{height}×{width} pixels that climbed from noise, in about {memory} of "
                "memory.",
                "Step {steps} of {all_steps}, seed {seed}, {space}: pictures of "
                "{height}×{width} pixels that climbed from noise, in about {memory} of "
                "memory.",
                len(goals),
                steps=optimization.steps,
                all_steps=choice.steps,
                seed=choice.seed,
                space=say(choice.space),
                height=optimization.shape[1],
                width=optimization.shape[2],
                memory=byte_size(optimization.nbytes),
            )
        ),
        *(
            ImagePanel(
                _title(subject, goal, both=choice.aim == BOTH),
                enlarged(picture),
                alt=say("A picture made by the network for {goal}", goal=goal.says(subject.model)),
                caption=say(
                    "{first_value} in noise, {last_value} now",
                    first_value=number(begun),
                    last_value=number(value),
                ),
            )
            for picture, goal, begun, value in zip(pictures, goals, first, values, strict=True)
        ),
        TextPanel(
            say(
                "It shows one thing that the unit answers to, not all of them, and not that "
                "the network uses it: units with random weights have pictures too. Look at "
                "real images beside it."
            ),
            "note",
        ),
        *how_note(optimization.passes.how),
    ]
    return tuple(panels), {
        "pictures": np.stack(pictures),
        "values": np.array(values, np.float64),
        "history": np.array(optimization.history, np.float64),
        "noise": np.array(first, np.float64),
    }


def _title(subject: Subject, goal: Objective, *, both: bool) -> str:
    """Return a picture's title without the layer, which the text above names."""
    what = goal.says_alone(subject.model)
    if both or not goal.rises:
        text = mark("What excites {goal}") if goal.rises else mark("What silences {goal}")
        return say(text, goal=what)
    return f"{what[0].upper()}{what[1:]}"


def script(facts: LensFacts) -> LensCode:
    """Write the pictures of every goal, from its seed, with as many steps as were done."""
    chosen = facts.chosen
    steady, maco = bool(chosen["steady"]), chosen["space"] == "MACO"
    of_class = chosen["of"] not in _OF_LAYER
    cell = not of_class and chosen["row"] >= 0 and len(facts.output) > 2
    costs = [_PENALTIES[chosen["penalty"]]] if chosen["penalty"] != "none" else []
    diverse = bool(chosen["pictures"] > 1 and chosen["diversity"])
    lines = [
        "" if of_class else constants(facts, layer=""),
        f"STEPS = {facts.values['history'][0]}  # {optimizing.STEPS_SAYS}",
        constants(facts, seed="of how the pictures are moved before each step") if steady else "",
        f"SIZE = {facts.values['pictures'][1:3]}  # rows and columns of pixels",
        f"CELL = {chosen['row'], chosen['column']}  # its row and column" if cell else "",
        constants(facts, strength="of the penalty") if costs else "",
        constants(facts, diversity="how much the pictures avoid each other") if diverse else "",
        _goals(facts),
        optimizing.as_input(facts),
        optimizing.maco(facts) if maco else optimizing.fourier(),
        source_of(moved) if steady else "",
        optimizing.output_of(facts, of="scores" if of_class else "LAYER"),
        source_of(weighted_sum),
        _VALUES.format(cell="CELL" if cell else "None"),
        source_of(total_variation) if _VARIATION in costs else "",
        source_of(diversity_penalty) if diverse else "",
        "" if maco else optimizing.noise(facts),
    ]
    maps = "[:, :, None]" if of_class or len(facts.output) < 2 else ""
    costs += [f"DIVERSITY * diversity_penalty(output{maps})"] if diverse else []
    loss = f"-(torch.tensor(SIGNS) * values{' / unit' if costs else ''}).sum()"
    before = _UNIT if costs else ""
    rate = "0.1" if maco else "0.05"
    lines += [optimizing.optimize(rate, steady=steady, before=before, loss=[loss, *costs])]
    lines += [optimizing.levels(facts)]
    return in_order(*lines), {
        "pictures": "shown",
        "values": "values.double().numpy()",
        "history": "np.array(history)",
        "noise": "np.array(history[0])",
    }


def _goals(facts: LensFacts) -> str:
    """Write a line for each picture, below the names of its classes."""
    chosen = facts.chosen
    signs = {EXCITES: (1,), SILENCES: (-1,), BOTH: (1, -1)}[chosen["aim"]]
    many = facts.values["values"][0] // (len(signs) * chosen["pictures"])
    weights: list[tuple[tuple[int, float], ...]] = {
        CHANNEL: [((chosen["channel"], 1.0),)],
        SEVERAL: [((channel, 1.0),) for channel in chosen["channels"] or range(many)],
        DIRECTION: [chosen["weights"]],
        CLASS: [((chosen["target"] or 0, 1.0),)],
        CLASSES: [chosen["weights"]],
    }[chosen["of"]]
    seeds = [(chosen["seed"] + number) % 2**31 for number in range(chosen["pictures"])]
    goals = [(seed, each, sign) for sign in signs for each in weights for seed in seeds]
    names, of_class = facts.categories, chosen["of"] not in _OF_LAYER
    classes = dict.fromkeys(index for each in weights for index, _ in each) if of_class else ()
    return _GOALS.format(
        what="classes" if of_class else "channels",
        names="".join(f"# Class {k}: {one_line(names[k])}.\n" for k in classes if k < len(names)),
        goals="".join(f"    {goal},\n" for goal in goals),
    )


_GOALS = """\
# For each picture: its seed, its {what} with their weights, and 1 to rise or -1 to fall.
{names}GOALS = [
{goals}]
SEEDS, WEIGHTS, SIGNS = zip(*GOALS, strict=True)
"""
_VALUES = """

def values_of(output):  # a number for each picture, (N,)
    return torch.stack([weighted_sum(*pair, {cell}) for pair in zip(output, WEIGHTS, strict=True)])

"""
_VARIATION = "10 * STRENGTH * total_variation(pictures)"
_PENALTIES = {
    "total variation": _VARIATION,
    "L2": "10 * STRENGTH * (pictures - 0.5).square().mean((1, 2, 3)).sum()",
}
_UNIT = """\
    if step == 0:  # goals count in units of the layer's spread, so a cost means the same in all
        unit = output.detach().flatten(1).std(1, correction=0)
"""

LENS = Lens(
    slug="maximize",
    title=mark("Activation maximisation"),
    question=mark("What does the channel look for?"),
    sentence=mark(
        "A picture that the network makes itself, of what excites a channel or a class most."
    ),
    group=SEES,
    preview=Preview(is_dear=True),
    run=run,
    of_images=True,
    script=script,
    parameters=(
        OneOf(name="of", label=mark("Of"), choices=OF, help=mark("What the picture is for.")),
        LayerChoice(kind="any", default="last conv", help=mark("Whose channels.")),
        ChannelChoice(matters_for=("of", (CHANNEL,)), help=mark("Whose mean is to rise.")),
        Channels(
            matters_for=("of", (SEVERAL,)),
            help=mark("A picture of each; of the first ones where none are named."),
        ),
        Weights(
            matters_for=("of", (DIRECTION, CLASSES)),
            help=mark("Numbers of channels or classes, with what each counts."),
        ),
        ClassChoice(
            optional=True,
            matters_for=("of", (CLASS,)),
            help=mark("Whose score is to rise; the likeliest class where nothing is chosen."),
        ),
        OneOf(
            name="aim",
            label=mark("Show"),
            choices=AIMS,
            help=mark("The strongest or the weakest answer."),
        ),
        steps_choice(STEPS),
        OneOf(
            name="space",
            label=mark("Made of"),
            choices=SPACES,
            help=mark("Waves that are free, or MACO: waves as strong as those in photographs."),
        ),
        seed_choice(mark("Of the noise to begin with: another seed, another picture.")),
        WholeNumber(
            name="side",
            label=mark("Size"),
            low=32,
            high=512,
            default=128,
            help=mark("Pixels a side; fewer where there are several pictures."),
            rare=True,
        ),
        *cell_choice(("of", _OF_LAYER), whose=False, rare=True),
        WholeNumber(
            name="pictures",
            label=mark("Pictures of each"),
            low=1,
            high=9,
            default=1,
            help=mark("Several of one unit, from seeds that follow each other."),
            rare=True,
        ),
        RealNumber(
            name="diversity",
            label=mark("Diversity"),
            low=0.0,
            high=1000.0,
            default=10.0,
            help=mark("How much several pictures of one unit avoid each other."),
            rare=True,
        ),
        OneOf(
            name="penalty",
            label=mark("Penalty"),
            choices=PENALTIES,
            help=mark("Total variation: smooth. L2: grey where nothing else is needed."),
            rare=True,
        ),
        RealNumber(
            name="strength",
            label=mark("Its strength"),
            matters_for=("penalty", PENALTIES[1:]),
            low=0.0,
            high=1000.0,
            default=1.0,
            rare=True,
        ),
        Switch(
            name="steady",
            label=mark("Moved before each step"),
            default=True,
            help=mark(
                "Shifted, turned and scaled a little, so that no accident of a pixel counts."
            ),
            rare=True,
        ),
        BESIDE_RANDOM,
    ),
)
