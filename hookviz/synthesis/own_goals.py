"""Let a person write their own goal: any function of what some layers put out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.errors import HookVizError, SettingError, UnknownNameError, shorten
from hookviz.language.saying import say
from hookviz.synthesis.composing import Composable
from hookviz.types import Model
from hookviz.wording import times

Outputs = Mapping[str | None, Tensor]
"""What each layer put out for one picture, ``(C, rows, columns)``."""


class _Outputs(dict[str | None, Tensor]):
    """Outputs by layer, which say what there is where one is not."""

    def __missing__(self, layer: object) -> Tensor:
        names = [str(each) for each in self]
        raise UnknownNameError(say("layer of this goal"), str(layer), names)


@dataclass(frozen=True, init=False)
class FunctionObjective(Composable):
    """Goal of one's own: any function of the outputs of some layers, to rise or to fall.

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
    >>> made = hookviz.maximize(model, goal, steps=4, method=hookviz.SynthesisMethod(size=64))
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
        """Check what is given, and take one name as a layer."""
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
