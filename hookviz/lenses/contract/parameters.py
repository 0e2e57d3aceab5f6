"""What can be chosen about a lens: each kind checks what it is given and knows its default."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Protocol

from hookviz.capturing.survey import Survey
from hookviz.errors import (
    HookVizError,
    ModelError,
    SettingError,
    UnknownLayerError,
    nearest_names,
    shorten,
)
from hookviz.types import Capture, LayerInfo, Model

_MOST_CHANNELS = 100_000  # that are asked for in one go


class Asked(Protocol):
    """What parameters want to know of the subject that a lens is asked about."""

    @property
    def model(self) -> Model:
        """The model."""
        ...

    @property
    def survey(self) -> Survey:
        """What a pass runs."""
        ...

    @property
    def scored(self) -> Capture:
        """A capture with class scores."""
        ...

    @property
    def top_class(self) -> int:
        """The likeliest class's number."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """Something to choose: its keyword, its label, and a line of help."""

    name: str
    label: str
    help: str = ""

    def resolve(self, given: Any, subject: Asked) -> Any:
        """What the lens gets for what was given, which may be text; None is the default.

        Raises:
            HookVizError: it means nothing, or not for this subject.
        """
        raise NotImplementedError

    def refuse(self, given: Any, wanted: str) -> SettingError:
        """The error that says what this parameter takes."""
        return SettingError(f"{self.name}={shorten(repr(given))} is not {wanted}.")


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerChoice(Parameter):
    """A layer by name.

    Attributes:
        kind: ``"conv"`` for conv layers alone, ``"all"`` for every layer without parts.
        default: ``"first"``, ``"last"``, ``"last map"`` for the last one whose output is maps of
            several cells, or ``"none"`` for a choice that can be left open.
    """

    name: str = "layer"
    label: str = "Layer"
    kind: str = "conv"
    default: str = "last"

    def choices(self, every: Sequence[LayerInfo]) -> tuple[str, ...]:
        """The names that can be chosen among every layer, which are in order of execution."""
        return tuple(layer.name for layer in every if self.kind == "all" or layer.kernel_size)

    def start(self, every: Sequence[LayerInfo]) -> str:
        """The default among them; there has to be one."""
        names = self.choices(every)
        if self.default == "last map":
            maps = (
                layer.name
                for layer in reversed(every)
                if layer.name in names
                and len(layer.output_shape) == 3
                and min(layer.output_shape[1:]) > 1
            )
            return next(maps, names[-1])
        return names[0 if self.default == "first" else -1]

    def resolve(self, given: Any, subject: Asked) -> str | None:
        """The layer's name; None only where the choice is left open."""
        names = self.choices(subject.survey.layers)
        if given is None and self.default == "none":
            return None
        if not names:
            raise HookVizError(f"{subject.model.title} has no conv layer to look at.")
        if given is None:
            return self.start(subject.survey.layers)
        if given in names:
            return str(given)
        kind = "conv layer" if self.kind == "conv" else "layer"
        raise UnknownLayerError(f"{kind} in {subject.model.title}", str(given), names)


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassChoice(Parameter):
    """A class by number or by name; the likeliest one by default.

    Attributes:
        optional: whether a network without class scores will do, and get None.
    """

    name: str = "target"
    label: str = "Class"
    optional: bool = False

    def resolve(self, given: Any, subject: Asked) -> int | None:
        """The class's number; None only where there are no classes and none are needed."""
        try:
            top = subject.top_class
        except ModelError:  # it says that there are no classes
            if self.optional and given is None:
                return None
            raise
        names = subject.model.categories
        if given is None:
            return top
        if isinstance(given, str) and not given.isdecimal():
            if given in names:
                return names.index(given)
            near = nearest_names(given, names)
            hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise SettingError(f"{subject.model.title} knows no class {shorten(given)!r}.{hint}")
        scores = subject.scored.logits
        assert scores is not None  # or there would be no likeliest class
        try:
            number = -1 if isinstance(given, bool) else int(given)
        except (TypeError, ValueError, OverflowError):  # Python reads up to 4,300 digits
            number = -1
        if not 0 <= number < len(scores):
            raise self.refuse(given, f"a class of {subject.model.title}: 0 to {len(scores) - 1}")
        return number


@dataclass(frozen=True, kw_only=True, slots=True)
class WholeNumber(Parameter):
    """A whole number from `low` to `high`."""

    low: int
    high: int
    default: int

    def resolve(self, given: Any, subject: Asked) -> int:  # noqa: ARG002
        """The number."""
        if given is None:
            return self.default
        try:
            number = int(given)
        except (TypeError, ValueError, OverflowError):
            number = self.low - 1
        if isinstance(given, float) and given != number:
            number = self.low - 1
        if not self.low <= number <= self.high:
            raise self.refuse(given, f"a whole number from {self.low} to {self.high}")
        return number


@dataclass(frozen=True, kw_only=True, slots=True)
class RealNumber(Parameter):
    """A number from `low` to `high`."""

    low: float
    high: float
    default: float

    def resolve(self, given: Any, subject: Asked) -> float:  # noqa: ARG002
        """The number."""
        if given is None:
            return self.default
        try:
            number = float(given)
        except (TypeError, ValueError):
            number = float("nan")
        if not self.low <= number <= self.high:
            raise self.refuse(given, f"a number from {self.low:g} to {self.high:g}")
        return number


@dataclass(frozen=True, kw_only=True, slots=True)
class OneOf(Parameter):
    """One of a few words; the first by default."""

    choices: tuple[str, ...]

    def resolve(self, given: Any, subject: Asked) -> str:  # noqa: ARG002
        """The word."""
        if given is None:
            return self.choices[0]
        if given not in self.choices:
            raise self.refuse(given, f"one of {', '.join(map(repr, self.choices))}")
        return str(given)


@dataclass(frozen=True, kw_only=True, slots=True)
class Switch(Parameter):
    """On or off."""

    default: bool = False

    def resolve(self, given: Any, subject: Asked) -> bool:  # noqa: ARG002
        """Whether it is on."""
        if given is None:
            return self.default
        known = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
        found = given if isinstance(given, bool) else known.get(str(given).casefold())
        if found is None:
            raise self.refuse(given, "yes or no")
        return bool(found)


@dataclass(frozen=True, kw_only=True, slots=True)
class Channels(Parameter):
    """Some channels: ``"0, 3-7"`` or a sequence of numbers; none by default.

    Whether the chosen layer has them is for the lens to check.
    """

    name: str = "channels"
    label: str = "Channels"

    def resolve(self, given: Any, subject: Asked) -> tuple[int, ...]:  # noqa: ARG002
        """The channels' numbers in order, each once."""
        if given is None:
            return ()
        numbers: set[int] = set()
        wanted, asked = 'channel numbers such as "0, 3-7"', 0
        if isinstance(given, str) and len(given) > _MOST_CHANNELS:
            raise self.refuse(given, wanted)
        if isinstance(given, int) and not isinstance(given, bool):
            given = (given,)
        if not isinstance(given, Iterable):
            raise self.refuse(given, wanted)
        parts: Iterable[Any] = given.split(",") if isinstance(given, str) else given
        for part in parts:
            text = str(part).strip()
            span = re.fullmatch(r"(\d{1,6})(?:\s*[-–]\s*(\d{1,6}))?", text, re.ASCII)
            if not text:
                continue
            first, last = (int(span[1]), int(span[2] or span[1])) if span else (0, -1)
            asked += last - first + 1
            if first > last or asked > _MOST_CHANNELS:  # the same ones again and again, too
                raise self.refuse(given, wanted)
            numbers.update(range(first, last + 1))
        return tuple(sorted(numbers))


@dataclass(frozen=True, kw_only=True, slots=True)
class MoreImages(Parameter):
    """More images beside the one looked at: a sequence of what `capture` takes; none by default."""

    name: str = "images"
    label: str = "More images"

    def resolve(self, given: Any, subject: Asked) -> tuple[Any, ...]:  # noqa: ARG002
        """The images as they were given."""
        if given is None:
            return ()
        if isinstance(given, str | bytes | PathLike) or not isinstance(given, Iterable):
            given = (given,)
        wrong = next((each for each in given if isinstance(each, int | float | None)), ...)
        if wrong is not ...:
            raise self.refuse(given, "images or a sequence of them, such as ['cat.jpg', 'dog.jpg']")
        return tuple(given)
