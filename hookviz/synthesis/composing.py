"""Define the goals of pictures, and compose them: sums, differences, multiples, own functions.

A `Goal` makes one number of the outputs of some layers for each picture. An `ObjectiveSum` adds
goals up, also of several layers. A `FunctionObjective` is any function of layers' outputs.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from hookviz.errors import HookVizError, SettingError, UnknownNameError, shorten
from hookviz.language.saying import say
from hookviz.types import Model
from hookviz.wording import times

Outputs = Mapping[str | None, Tensor]
"""What each layer put out for one picture, ``(C, rows, columns)``."""


class Goal(Protocol):
    """Protocol of a goal: one number for each picture of a batch."""

    @property
    def layers(self) -> tuple[str | None, ...]:
        """Layers of whose outputs the number is made; None for the class scores."""
        ...

    @property
    def rises(self) -> bool:
        """Whether the number is to rise; it is to fall otherwise."""
        ...

    def value(self, *outputs: Tensor) -> Tensor:
        """Return the number, (), of one picture's outputs, ``(C, rows, columns)`` of each layer."""
        ...

    def unit(self, *outputs: Tensor) -> Tensor:
        """Return the number's unit against a penalty, ``(N,)``, of ``(N, C, rows, columns)``."""
        ...

    def says(self, model: Model) -> str:
        """Name the goal within a sentence."""
        ...


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
    >>> config = hookviz.MaximizationConfig(size=64)
    >>> made = hookviz.maximize_activation(model, goal, steps=2, method=config)
    >>> made.pictures[0].shape  # (H, W, RGB)
    (64, 64, 3)
    """

    terms: tuple[tuple[float, Any], ...]

    @property
    def rises(self) -> bool:
        """Whether the sum is to rise: always; a goal that is to fall counts less than 0."""
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
        return sum_in_words(
            (counted(weight, goal), goal.says(model)) for weight, goal in self.terms
        )


def sum_in_words(terms: Iterable[tuple[float, str]]) -> str:
    """Write a sum of weighted terms: ``"a − 2 × b"``.

    >>> sum_in_words([(1, "a"), (-2, "b")])
    'a − 2 × b'
    """
    words = ""
    for weight, name in terms:
        sign = "−" if weight < 0 else "+"
        words += f" {sign} " if words else sign.strip("+")
        words += ("" if abs(weight) == 1 else f"{abs(weight):g} × ") + name
    return words


def counted(weight: float, goal: Goal) -> float:
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


class _Outputs(dict[str | None, Tensor]):
    """Outputs by layer, which say what there is where one is not."""

    def __missing__(self, layer: object) -> Tensor:
        names = [str(each) for each in self]
        raise UnknownNameError(say("layer of this goal"), str(layer), names)


@dataclass(frozen=True, init=False)
class FunctionObjective(Composable):
    """Goal by a function: any function of the outputs of some layers, to rise or to fall.

    Adds up with others by ``+``, ``-`` and ``*``, as `Objective` does.

    Attributes:
        layers: names of one or more layers; None among them stands for the class scores before the
            softmax, as ``(classes, 1, 1)``.
        function: from a mapping of each of these layers to its output for one picture, a
            float tensor ``(C, rows, columns)`` in the layer's own units (``(C, 1, 1)`` of a vector,
            a token's place as a cell), to one number, a tensor (). It is called once a picture and
            step, and has to compute by torch alone, so that a gradient goes through it.
        name: what it is called in messages; the function's own name by default.
        rises: whether it is to rise; else it is to fall.

    Raises:
        SettingError: there is no layer, one is no name, or `function` is none.

    >>> def alike(outputs):  # channels 3 and 5 of one layer, the strongest cell of another
    ...     first, deep = outputs["stem.first.conv"], outputs["stage3.second.conv"]
    ...     return deep[7].max() - (first[3] - first[5]).square().mean()
    >>> goal = hookviz.FunctionObjective(["stem.first.conv", "stage3.second.conv"], alike)
    >>> model = hookviz.load_model("shapesnet")
    >>> config = hookviz.MaximizationConfig(size=64)
    >>> made = hookviz.maximize_activation(model, goal, steps=4, method=config)
    >>> made.history.shape  # (steps, pictures)
    (4, 1)
    """

    layers: tuple[str | None, ...]
    function: Callable[[Outputs], Tensor]
    name: str
    rises: bool

    def __init__(
        self,
        layers: str | Sequence[str | None] | None,
        function: Callable[[Outputs], Tensor],
        name: str = "",
        *,
        rises: bool = True,
    ) -> None:
        given: Any = layers
        layers = (given,) if given is None or isinstance(given, str) else given
        if not isinstance(layers, Sequence) or not layers:
            raise SettingError(say("A goal needs a layer: layers={layers} has none.", layers=given))
        if wrong := [each for each in layers if not (each is None or isinstance(each, str))]:
            raise SettingError(say("{layer} is no name of a layer.", layer=shorten(repr(wrong[0]))))
        if not callable(function):
            raise SettingError(
                say("function={function} can't be called.", function=shorten(repr(function)))
            )
        fields = {"layers": tuple(dict.fromkeys(layers)), "function": function}
        for field, value in (fields | {"name": name, "rises": rises}).items():
            object.__setattr__(self, field, value)  # as a frozen dataclass does it itself

    def value(self, *outputs: Tensor) -> Tensor:
        """Return the number, (), of one picture's outputs, ``(C, rows, columns)`` of each layer.

        Raises:
            SettingError: the function fails, or returns no number.
        """
        try:
            value: Any = self.function(_Outputs(zip(self.layers, outputs, strict=True)))
        except HookVizError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".partition("\n")[0]
            raise SettingError(
                say("The goal {name!r} fails: {reason}", name=self._called, reason=reason)
            ) from error
        if not isinstance(value, Tensor):
            raise SettingError(
                say(
                    "The goal {name!r} returns {kind}, and one number is needed, as a tensor that "
                    "torch has computed of the outputs.",
                    name=self._called,
                    kind=type(value).__name__,
                )
            )
        if value.numel() != 1:
            raise SettingError(
                say(
                    "The goal {name!r} returns {shape} numbers, and one is needed: "
                    ".mean(), .sum() or .max() makes one of them.",
                    name=self._called,
                    shape=times(value.shape),
                )
            )
        if not value.is_floating_point():
            raise SettingError(
                say(
                    "The goal {name!r} returns a number of type {kind}, which has no gradient: a "
                    "float one is needed. Comparing and argmax make no such number.",
                    name=self._called,
                    kind=str(value.dtype).removeprefix("torch."),
                )
            )
        return value.reshape(())

    def unit(self, *outputs: Tensor) -> Tensor:
        """Return 1 for each picture: what the function returns is in a unit of its own."""
        return torch.ones(len(outputs[0]), device=outputs[0].device, dtype=outputs[0].dtype)

    def check(self, model: Model | nn.Module, *shapes: Sequence[int]) -> None:
        """Check nothing: what the function needs shows when it is called."""

    def says(self, model: Model | nn.Module) -> str:  # noqa: ARG002 - as every goal's
        """Name the goal within a sentence."""
        return say("the goal {name!r}", name=self._called)

    @property
    def _called(self) -> str:
        return self.name or getattr(self.function, "__name__", type(self.function).__name__)
