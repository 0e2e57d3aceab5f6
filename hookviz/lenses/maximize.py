"""What a unit looks for: a picture that the network makes itself, by climbing from noise.

Over 300 lines: its sentences for people stand whole, with a line for each fact.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hookviz.drawing.panels import ImagePanel, Panel, TextPanel
from hookviz.drawing.pictures import enlarged
from hookviz.errors import SettingError
from hookviz.language.saying import mark, say, say_count
from hookviz.lenses.contract.beside_random import BESIDE_RANDOM
from hookviz.lenses.contract.lens import Lens, LensOutput, Subject
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
from hookviz.lenses.contract.quantity_choice import cell_choice, chosen_cell
from hookviz.lenses.contract.watching import seed_choice, steps_choice, watched
from hookviz.lenses.contract.weights import Weights
from hookviz.synthesis.goals import Objective
from hookviz.synthesis.maximizing import STEPS, begin
from hookviz.synthesis.method import PENALTIES, SPACES, SynthesisMethod
from hookviz.synthesis.optimizing import Optimization
from hookviz.synthesis.resuming import run_resumed
from hookviz.synthesis.robustness import NONE, SLIGHT
from hookviz.wording import byte_size, number

CHANNEL, SEVERAL, DIRECTION, CLASS, CLASSES = OF = (
    *(mark("a channel"), mark("channels side by side"), mark("channels with weights")),
    *(mark("a class"), mark("classes with weights")),
)
EXCITES, SILENCES, BOTH = AIMS = mark("what excites it"), mark("what silences it"), mark("both")
_OF_LAYER = (CHANNEL, SEVERAL, DIRECTION)
_SEVERAL = 9  # channels side by side where none are named
_MOST = 36
_SMALL = 80  # pixels a side of several pictures at once, at most


@dataclass(frozen=True, slots=True)
class _Choice:
    """What a person chose, by the parameters' names."""

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
        """What each picture is for, or each group of `pictures`."""
        rising = self._rising(subject)
        silencing = tuple(replace(each, rises=False) for each in rising)
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
            return self.channels[: _MOST + 1]  # one too many is told
        info = next(each for each in subject.trace.every if each.name == self.layer)
        return tuple(range(min(_SEVERAL, info.output_shape[0])))

    def method(self, many: int, least: int) -> SynthesisMethod:
        """How so many pictures are made, of a network that takes `least` pixels a side."""
        return SynthesisMethod(
            size=self.side if many == 1 else min(self.side, max(_SMALL, least)),
            seed=self.seed,
            space=self.space,
            robustness=SLIGHT if self.steady else NONE,
            penalty=self.penalty,
            strength=self.strength,
            diversity=self.diversity if self.pictures > 1 else 0.0,
        )


def run(subject: Subject, **chosen: Any) -> LensOutput:
    """Pictures by activation maximisation (Erhan et al., 2009), see `hookviz.maximize`.

    Values are ``pictures`` ``(N, H, W, 3)`` uint8, ``values`` ``(N,)``: what each objective comes
    to on its picture, ``history`` ``(steps, N)``: in each step, on the disturbed picture, and
    ``noise`` ``(N,)``: in the first step, on what was begun with.

    Raises:
        SettingError: there is no such channel, class or cell, or too many are asked for.
        ModelError: there is nothing to climb; where another layer can be climbed it is named.
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

    key = ("optimization", subject.model.digest, objectives, choice.pictures, method)
    run_resumed(
        optimization, choice.steps, subject.cache, key, watched(subject, choice.steps, show)
    )
    return _output(subject, choice, optimization, optimization.measured())


def _output(
    subject: Subject, choice: _Choice, optimization: Optimization, values: Sequence[float]
) -> LensOutput:
    """What there is so far; the same panels at every step."""
    pictures, first = optimization.pictures(), optimization.history[0]
    goals = [goal for goal in optimization.goals if isinstance(goal, Objective)]
    panels: list[Panel] = [
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
    ]
    return tuple(panels), {
        "pictures": np.stack(pictures),
        "values": np.array(values, np.float64),
        "history": np.array(optimization.history, np.float64),
        "noise": np.array(first, np.float64),
    }


def _title(subject: Subject, goal: Objective, *, both: bool) -> str:
    """The picture's title: the layer, which is the same for all, is said elsewhere."""
    what = goal.says_alone(subject.model)
    if both or not goal.rises:
        return (
            say("What excites {goal}", goal=what)
            if goal.rises
            else say("What silences {goal}", goal=what)
        )
    return f"{what[0].upper()}{what[1:]}"


LENS = Lens(
    slug="maximize",
    title=mark("Activation maximisation"),
    question=mark("What does it look for?"),
    sentence=mark(
        "A picture that the network makes itself, of what excites a channel or a class most."
    ),
    run=run,
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
