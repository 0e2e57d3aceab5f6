"""Compose goals of pictures: their sums, differences and multiples, over several layers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.errors import SettingError, shorten
from hookviz.language.saying import say
from hookviz.synthesis.goal import CheckedGoal
from hookviz.types import Model


class Composable:
    """Give a goal the signs ``+``, ``-`` and ``*``, which make an `ObjectiveSum`."""

    __slots__ = ()

    def __add__(self, other: Any) -> "ObjectiveSum":
        """Maximise both together."""
        return ObjectiveSum((*_terms(self), *_terms(other)))

    def __sub__(self, other: Any) -> "ObjectiveSum":
        """Maximise this one, and minimise the other."""
        return ObjectiveSum(
            (*_terms(self), *((-weight, goal) for weight, goal in _terms(_checked(other))))
        )

    def __mul__(self, weight: float) -> "ObjectiveSum":
        """Let it count `weight` times; less than 0 looks for what silences it."""
        given: Any = weight
        if isinstance(given, bool) or not isinstance(given, Real):
            raise SettingError(
                say(
                    "A goal counts as many times as a number says, and {weight} is none.",
                    weight=shorten(repr(given)),
                )
            )
        if not math.isfinite(weight):
            raise SettingError(say("A goal can't count {weight} times.", weight=weight))
        return ObjectiveSum(tuple((float(weight) * old, goal) for old, goal in _terms(self)))

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> "ObjectiveSum":
        """Let it count less, as for a mean of several."""
        if divisor == 0:
            raise SettingError(say("A goal can't be divided by 0."))
        return self * (1 / divisor)

    def __neg__(self) -> "ObjectiveSum":
        """Minimise it."""
        return self * -1


@dataclass(frozen=True, slots=True)
class ObjectiveSum(Composable):
    """Sum of objectives times their weights, over as many layers as they are of.

    What ``+``, ``-``, ``*`` and ``/`` make of objectives, as lucent's and lucid's compose.

    Attributes:
        terms: what each counts, and the objective. One that is to fall counts its negative.

    >>> bright = hookviz.Objective.of_channel("stem.first.conv", 3)
    >>> deep = hookviz.Objective.of_channel("stage3.second.conv", 5, cell=(2, 2))
    >>> goal = deep - 0.5 * bright
    >>> goal.layers
    ('stage3.second.conv', 'stem.first.conv')
    >>> model = hookviz.load_model("shapesnet")
    >>> made = hookviz.maximize(model, goal, steps=2, method=hookviz.SynthesisMethod(size=64))
    >>> made.pictures[0].shape  # (H, W, RGB)
    (64, 64, 3)
    """

    terms: tuple[tuple[float, Any], ...]

    @property
    def rises(self) -> bool:
        """Whether the sum is to rise: always; what is to fall counts less than 0."""
        return True

    @property
    def layers(self) -> tuple[str | None, ...]:
        """Layers of all terms, each once; None for the class scores."""
        return tuple(dict.fromkeys(layer for _, goal in self.terms for layer in goal.layers))

    def value(self, *outputs: Tensor) -> Tensor:
        """Return the sum, (), of one picture's outputs, ``(C, rows, columns)`` of each layer."""
        of_layer = dict(zip(self.layers, outputs, strict=True))
        values = [
            counted(weight, goal) * goal.value(*(of_layer[layer] for layer in goal.layers))
            for weight, goal in self.terms
        ]
        return torch.stack([each.to(values[0]) for each in values]).sum()

    def unit(self, *outputs: Tensor) -> Tensor:
        """Return the terms' units, times what they count and added up, ``(N,)``."""
        of_layer = dict(zip(self.layers, outputs, strict=True))
        units = [
            abs(weight) * goal.unit(*(of_layer[layer] for layer in goal.layers))
            for weight, goal in self.terms
        ]
        return torch.stack([each.to(units[0]) for each in units]).sum(0)

    def check(self, model: Model | nn.Module, *shapes: Sequence[int]) -> None:
        """Check that the layers' outputs have all that the terms need.

        Args:
            model: for the words.
            shapes: ``(C, rows, columns)`` of each layer's output.

        Raises:
            SettingError: they have not, or every term counts 0.
        """
        if not any(weight for weight, _ in self.terms):
            raise SettingError(say("Every goal of the sum counts 0: there is nothing to look for."))
        of_layer = dict(zip(self.layers, shapes, strict=True))
        for _, goal in self.terms:
            goal.check(model, *(of_layer[layer] for layer in goal.layers))

    def says(self, model: Model | nn.Module) -> str:
        """Name the goal within a sentence."""
        words = ""
        for weight, goal in self.terms:
            counts = counted(weight, goal)
            sign = "−" if counts < 0 else "+"
            words += f" {sign} " if words else sign.strip("+")
            words += "" if abs(counts) == 1 else f"{abs(counts):g} × "
            words += goal.says(model)
        return words


def counted(weight: float, goal: CheckedGoal) -> float:
    """Return what a goal's value counts in a sum: its negative where it is to fall."""
    return weight if goal.rises else -weight


def _terms(goal: Any) -> tuple[tuple[float, Any], ...]:
    """Return what a goal adds to a sum."""
    goal = _checked(goal)
    return goal.terms if isinstance(goal, ObjectiveSum) else ((1.0, goal),)


def _checked(goal: Any) -> Any:
    if not isinstance(goal, Composable):
        raise SettingError(
            say(
                "{goal} can't be added to a goal: only other goals can, such as "
                "hookviz.Objective.of_channel('conv1', 5).",
                goal=shorten(repr(goal)),
            )
        )
    return goal
