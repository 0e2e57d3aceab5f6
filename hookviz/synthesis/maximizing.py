"""Maximise activations: make pictures that excite units, by gradient ascent from noise."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from hookviz.capturing.layer_trace import layer_trace
from hookviz.errors import SettingError, UnknownLayerError, shorten
from hookviz.hooking.device import with_numbers
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import say
from hookviz.models.wrapping import as_model
from hookviz.synthesis.composing import FunctionObjective, ObjectiveSum
from hookviz.synthesis.goals import Objective
from hookviz.synthesis.optimizing import Optimization
from hookviz.synthesis.picture_space import picture_shape
from hookviz.synthesis.settings import MOST_STEPS, MaximizationConfig
from hookviz.types import Model, Pixels, Progress, ignore

AnyObjective = Objective | ObjectiveSum | FunctionObjective
"""What a picture can be for: a unit, a sum of several goals, a function."""

STEPS = 256
"""Steps of an optimization, where nobody says otherwise."""


@dataclass(frozen=True, eq=False, slots=True)
class MaximizationResult:
    """Pictures that a network made, as far as they are.

    Attributes:
        pictures: RGB, uint8, ``(H, W, 3)`` each.
        values: of each objective on its untransformed picture.
        history: in each step, on the transformed picture, ``(steps, pictures)``.
        objectives: of each picture.
        method: how they were made.
        steps: how many were done.
    """

    pictures: tuple[Pixels, ...] = field(repr=False)
    values: tuple[float, ...]
    history: NDArray[np.float64] = field(repr=False)
    objectives: tuple[AnyObjective, ...]
    method: MaximizationConfig
    steps: int
    _optimization: Optimization = field(repr=False)

    @property
    def model(self) -> Model:
        """The network that made them."""
        return self._optimization.model

    @property
    def model_shape(self) -> tuple[int, int, int]:
        """``(C, H, W)`` of each picture as the network takes it; grey ones have one channel."""
        return self._optimization.shape

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seed of each picture's first noise."""
        return self._optimization.seeds

    def resumed(self, steps: int, progress: Progress = ignore) -> "MaximizationResult":
        """Return the same pictures after `steps` in all, equal to those of one uninterrupted run.

        Raises:
            HookVizError: as `maximize_activation` does.
        """
        return _optimized(self._optimization, self.objectives, steps, progress)


@with_numbers
def maximize_activation(
    model: Model | nn.Module,
    objective: AnyObjective | Sequence[AnyObjective],
    *,
    steps: int = STEPS,
    pictures: int = 1,
    method: MaximizationConfig | None = None,
    progress: Progress = ignore,
) -> MaximizationResult:
    """Make pictures that excite a unit, by gradient ascent from noise (Erhan et al., 2009).

    Such a picture shows one thing that the unit answers to; real images that excite it may be of
    others. What it proves is little, as networks with random weights have pretty pictures too.

    The network's parameters and everybody else's gradients stay as they are. Equal arguments give
    equal pictures on one machine with as many threads; one of several is, to rounding, the one
    that it is alone.

    Args:
        model: from `load_model` or `wrap`, or a module of one's own.
        objective: what the picture is for: a unit, a sum of goals over several layers
            (``a - 0.5 * b``), or a `FunctionObjective`, any function of layers' outputs; one
            picture for each of several, of the same layers.
        steps: passes there and back, 1 to 4096.
        pictures: how many of each objective, from seeds that follow each other; with
            `MaximizationConfig.diversity` they avoid each other.
        method: size, seed and the rest; `MaximizationConfig()` by default.
        progress: called with the share done after every step; what it raises ends the run.

    Raises:
        SettingError: an option, a channel, a class or a cell is not there, `objective` is none, or
            a function fails or returns something else than one number.
        UnknownLayerError: a pass runs no layer of that name.
        ModelError: there is no gradient to follow, a number is not finite, the network can't be
            differentiated, or there is not the memory for it; where another layer does, it is
            named.

    >>> model = hookviz.load_model("shapesnet")
    >>> of = hookviz.Objective.of_class(model.categories.index("star"))
    >>> config = hookviz.MaximizationConfig(size=64)
    >>> result = hookviz.maximize_activation(model, of, steps=8, method=config)
    >>> result.pictures[0].shape, result.steps
    ((64, 64, 3), 8)
    """
    model = as_model(model)
    argument: Any = objective
    several = isinstance(argument, Iterable) and not isinstance(argument, str)
    objectives: tuple[Any, ...] = tuple(argument) if several else (argument,)
    if not objectives or not all(isinstance(each, AnyObjective) for each in objectives):
        raise SettingError(
            say(
                "objective={objective} is no Objective and no sequence of them; "
                "hookviz.Objective.of_class, of_channel and of_direction make one.",
                objective=shorten(repr(objective)),
            )
        )
    if pictures < 1:
        raise SettingError(
            say("pictures={pictures}: at least one of each is made.", pictures=pictures)
        )
    optimization = begin(model, objectives, method or MaximizationConfig(), pictures)
    of_each = tuple(each for each in objectives for _ in range(pictures))
    return _optimized(optimization, of_each, steps, progress)


def begin(
    model: Model, objectives: Sequence[AnyObjective], method: MaximizationConfig, pictures: int = 1
) -> Optimization:
    """Begin an optimization without a step yet, of `pictures` for each of the objectives.

    Raises:
        HookVizError: as `maximize_activation` does.
    """
    method.check()
    check(model, objectives, picture_shape(model, method.size))
    goals = [each for each in objectives for _ in range(pictures)]
    seeds = [(method.seed + number) % 2**31 for _ in objectives for number in range(pictures)]
    return Optimization(model, goals, method, seeds=seeds)


def check(model: Model, objectives: Sequence[AnyObjective], shape: tuple[int, ...]) -> None:
    """Check that a pass over pictures of `shape` has all that the objectives ask for.

    Raises:
        UnknownLayerError: it runs no layer of that name.
        SettingError: a layer lacks that channel or cell, or the network that class.
    """
    trace = layer_trace(model, shape)
    shapes = {info.name: info.output_shape for info in trace.every}
    for objective in objectives:
        for layer in objective.layers:
            if layer in trace.functions.calls:
                raise SettingError(
                    say(
                        "{layer} is a function in the network's code: pictures are made for "
                        "layers. Show the layer before it.",
                        layer=layer,
                    )
                )
        known = [_shape(model, layer, shapes, trace.scores) for layer in objective.layers]
        if None not in known:
            objective.check(model, *(each for each in known if each is not None))


def _shape(
    model: Model, layer: str | None, shapes: Mapping[str, tuple[int, ...]], scores: int
) -> tuple[int, ...] | None:
    """Return what a layer puts out, ``(C, rows, columns)``; None where there are no scores."""
    if layer is None:
        return (scores, 1, 1) if scores else None
    if layer not in shapes:
        raise UnknownLayerError(say("layer in {model}", model=model.title), layer, shapes)
    return (*shapes[layer], 1, 1)[:3]


def _optimized(
    optimization: Optimization, objectives: tuple[AnyObjective, ...], steps: int, progress: Progress
) -> MaximizationResult:
    if not 1 <= steps <= MOST_STEPS:
        raise SettingError(
            say(
                "steps={steps} is not a whole number from 1 to {limit}.",
                steps=steps,
                limit=MOST_STEPS,
            )
        )
    reporter = ProgressReporter(progress)
    optimization.run(steps, lambda now: reporter.share(now.steps / steps))
    return synthesis(optimization, objectives)


def synthesis(
    optimization: Optimization, objectives: tuple[AnyObjective, ...]
) -> MaximizationResult:
    """Return the pictures that an optimization has reached."""
    history = np.array(optimization.history, np.float64).reshape(-1, len(objectives))
    return MaximizationResult(
        optimization.pictures(),
        optimization.measured(),
        history[: optimization.steps],
        objectives,
        optimization.method,
        optimization.steps,
        optimization,
    )
