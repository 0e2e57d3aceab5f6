"""Say what a goal of pictures is: a number made of what some layers put out for each of them."""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from hookviz.types import Model


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


class CheckedGoal(Goal, Protocol):
    """Protocol of a goal that knows which channels and cells it needs."""

    def check(self, model: Model, *shapes: Sequence[int]) -> None:
        """Check that outputs of ``(C, rows, columns)``, of each layer, have all that is needed.

        Raises:
            SettingError: they have not.
        """
        ...
