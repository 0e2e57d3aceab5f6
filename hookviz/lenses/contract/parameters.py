"""Declare what can be chosen of a lens: each kind checks a value and knows its default."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

from hookviz.capturing.last_maps import IDLE, last_maps
from hookviz.capturing.layer_trace import LayerTrace
from hookviz.errors import (
    HookVizError,
    ModelError,
    SettingError,
    UnknownLayerError,
    shorten,
)
from hookviz.explaining.scores.scoring import class_number
from hookviz.hooking.function_calls import no_module
from hookviz.hooking.modules import without_wrappers
from hookviz.hooking.selection import PATTERN, select
from hookviz.images.samples import samples
from hookviz.language.saying import joined, mark, say
from hookviz.types import TOKENS, ActivationKey, LayerInfo, Model
from hookviz.wording import read_numbers, times

if TYPE_CHECKING:
    from hookviz.lenses.contract.lens import Subject

_MOST_CHANNELS = 100_000  # that are asked for in one go


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """Parameter of a lens: its name, its words and which values it takes.

    Attributes:
        name: its keyword.
        label: how people write it.
        help: a line about it.
        matters_for: the name of a parameter before this one, and the choices of that for which
            this one matters; no choices stand for any at all. A front end asks for nothing else.
        rare: whether few people ever change it, so that a front end keeps it out of the way.
    """

    name: str
    label: str
    help: str = ""
    matters_for: tuple[str, tuple[str, ...]] | None = None
    rare: bool = False

    def matters(self, chosen: Mapping[str, Any]) -> bool:
        """Return whether this makes a difference, by what has been chosen of the others."""
        if self.matters_for is None:
            return True
        name, choices = self.matters_for
        return chosen.get(name) in choices if choices else chosen.get(name) is not None

    def resolve(self, value: Any, subject: "Subject") -> Any:
        """Return what the lens gets for a value, which may be text from a link or a command line.

        Args:
            value: what a person chose; None for the default.
            subject: what the lens is asked about.

        Raises:
            HookVizError: the value means nothing, or not for this subject.
        """
        raise NotImplementedError

    def refuse(self, value: Any, wanted: str) -> SettingError:
        """Return the error that names the value and says what this takes: `wanted`, a noun."""
        return SettingError(
            say(
                "{name}={value} is not {expected}.",
                name=self.name,
                value=shorten(repr(value)),
                expected=wanted,
            )
        )


def _one_layer(model: Model, value: Any, names: Sequence[str]) -> str:
    """Return the name of the one layer that a pattern, a module, a type or a predicate fits.

    Raises:
        SettingError: it fits none of the `names`, or several.
    """
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    if isinstance(value, str):
        value = without_wrappers(value, names)
    is_pattern = isinstance(value, str) and value not in names and not PATTERN.isdisjoint(value)
    if not (is_pattern or isinstance(value, re.Pattern) or callable(value)):
        return str(value)
    try:
        chosen = select(model, value)
    except UnknownLayerError:
        if isinstance(value, str):  # ``block[0]`` is an address, and told as one
            return value
        raise
    fitting = [name for name in names if name in chosen]
    if len(fitting) != 1:
        raise SettingError(
            say(
                "layer={value} fits {count} of the layers that can be asked about, and one is "
                "looked at. Choose from {names}.",
                value=shorten(repr(value)),
                count=len(fitting),
                names=joined(map(repr, (fitting or names)[:6])),
            )
        )
    return fitting[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerChoice(Parameter):
    """Choice of a layer by its name, or by whatever `observe` takes that fits one.

    Attributes:
        kind: ``"conv"`` for conv layers alone, ``"conv or linear"`` for these and linear layers
            that put out maps (`LayerTrace.convs_and_linears`), ``"all"`` for every layer without
            parts, ``"maps"`` for whatever puts out maps, blocks such as ``layer4`` too, ``"any"``
            for all of these.
        default: ``"first"``, ``"last"``, ``"last conv"`` or ``"last map"``, whose output is maps
            of several cells, for the last one whose channels are not the classes themselves
            (`LayerTrace.hidden`), or ``"none"`` for a choice that can be left open. Of blocks only
            ``"last map"`` may be one (`last_maps`).
        of_calls: whether a later call of a layer can be chosen, as ``relu#1`` for its second.
    """

    name: str = "layer"
    label: str = mark("Layer")
    kind: str = "conv"
    default: str = "last"
    of_calls: bool = False

    def choices(self, trace: LayerTrace) -> tuple[LayerInfo, ...]:
        """Return the layers that can be chosen of a network, in order of execution."""
        return {
            "conv": trace.convs,
            "conv or linear": trace.convs_and_linears,
            "all": trace.layers,
            "maps": trace.maps,
            "any": trace.every,
        }[self.kind]

    def offered(self, trace: LayerTrace) -> list[str]:
        """Return all that `resolve` takes of a network: the layers, and later calls of them."""
        calls = trace.calls if self.of_calls else {}
        return [
            str(ActivationKey(layer.name, call)) if call else layer.name
            for layer in self.choices(trace)
            for call in range(calls.get(layer.name, 1))
        ]

    def start(self, trace: LayerTrace) -> str:
        """Return the default among a network's layers; there has to be one."""
        offered = {layer.name for layer in self.choices(trace)}
        if self.default == "last conv" and trace.convs:
            offered &= {layer.name for layer in trace.convs}
        names = [layer.name for layer in trace.layers if layer.name in offered]
        names = names or [layer.name for layer in self.choices(trace)]  # blocks alone
        if self.default == "first":
            return names[0]
        hidden = [layer for layer in trace.hidden if layer.name in names]
        if self.default == "last map":
            last = last_maps(trace, {layer.name for layer in self.choices(trace)})
            if last is not None:
                return last
            maps = [
                layer
                for layer in reversed(hidden)
                if layer.name in trace.map_outputs and len(layer.output_shape) > 1
                if layer.kind not in IDLE
                if layer.layout != TOKENS
            ]
            larger = (layer.name for layer in maps if min(layer.output_shape[1:]) > 1)
            return next(larger, maps[0].name if maps else names[-1])
        return hidden[-1].name if hidden else names[-1]

    def resolve(self, value: Any, subject: "Subject") -> str | None:
        """Return the layer's name, or the address of a call; None only where it is left open.

        Raises:
            UnknownLayerError: a pass runs no layer of that name.
            SettingError: it runs one that is no convolution, where kernels are looked at, or none
                with weights for maps, where these are; or it is a function, and no module.
            HookVizError: there is no layer to choose from.
        """
        names = [layer.name for layer in self.choices(subject.trace)]
        if value is None and self.default == "none":
            return None
        if self.default == "none" and len(subject.shape) != 3:
            raise SettingError(
                say(
                    "{name}={value} asks about a layer's maps of an image, and {model} takes "
                    "other input. Leave it out.",
                    name=self.name,
                    value=shorten(repr(value)),
                    model=subject.model.title,
                )
            )
        if not names:
            wanted = say("layer that puts out maps") if self.kind == "maps" else say("conv layer")
            raise HookVizError(
                say("{model} has no {kind} to look at.", model=subject.model.title, kind=wanted)
            )
        if value is None:
            return self.start(subject.trace)
        value = _one_layer(subject.model, value, names)
        if value in names:
            return str(value)
        if value in subject.trace.functions.calls:
            order = tuple(subject.trace.recordable)
            before = [name for name in order[: order.index(value)] if name in names]
            nearest = before[-1] if before else names[0]
            raise no_module(value, subject.model.title, nearest)
        address = ActivationKey.read(str(value))
        if address.call and not address.path and address.layer in names:
            return self._call(address, subject)
        kind = "layer"
        shapes = {layer.name: layer.output_shape for layer in self.choices(subject.trace)}
        if self.kind in {"maps", "any"}:  # of one cell there is little to see
            outputs = subject.trace.map_outputs
            maps = [name for name in names if outputs.get(name, ())[:1] == (ActivationKey(name),)]
            names = [name for name in maps if prod(shapes[name][1:]) > 1] or names
        self._check_kind(value, subject, names)
        if self.kind in {"conv", "conv or linear"}:
            kind = say("conv layer") if self.kind == "conv" else say("conv or linear layer")
        raise UnknownLayerError(
            say("{kind} in {model}", kind=kind, model=subject.model.title), str(value), names
        )

    def _call(self, address: ActivationKey, subject: "Subject") -> str:
        """Return the address of a later call of a layer that can be chosen, or refuse it."""
        calls = subject.trace.calls[address.layer]
        if self.of_calls and address.call < calls:
            return str(address)
        last = ActivationKey(address.layer, calls - 1 if self.of_calls else 0)
        raise SettingError(
            say(
                "{name}={value} is call {number} of layer {layer!r}, which runs {calls} times in a "
                "pass. The last one that can be asked about here is {last!r}.",
                name=self.name,
                value=str(address),
                number=address.call + 1,
                layer=address.layer,
                calls=calls,
                last=str(last),
            )
        )

    def _check_kind(self, value: Any, subject: "Subject", fitting: Sequence[str]) -> None:
        """Say of a layer that runs and is of another kind what it is, and which is nearest."""
        every = [layer.name for layer in subject.trace.every]
        if value not in every:
            return
        before = every[: every.index(value)]
        inside = [name for name in fitting if name.startswith(f"{value}.")]
        near = [*fitting[:1], *(name for name in before if name in fitting), *inside]
        shape = subject.trace.every[len(before)].output_shape
        if self.kind != "conv":
            wanted = {
                "maps": say("a layer that puts out maps"),
                "conv or linear": say("a convolution, or a linear layer that puts out maps"),
            }.get(self.kind, say("a layer without parts"))
            raise SettingError(
                say(
                    "Layer {layer!r} of {model} is a {kind} that puts out {shape}, and asked for "
                    "here is {wanted}. The nearest one is {nearest!r}.",
                    layer=value,
                    model=subject.model.title,
                    kind=type(subject.model.network.get_submodule(value)).__name__,
                    shape=times(shape) or say("no tensor"),
                    wanted=wanted,
                    nearest=near[-1],
                )
            )
        raise SettingError(
            say(
                "Layer {layer!r} of {model} is a {kind}, and no convolution, whose kernels are "
                "looked at here. The nearest one is {conv!r}.",
                layer=value,
                model=subject.model.title,
                kind=type(subject.model.network.get_submodule(value)).__name__,
                conv=near[-1],
            )
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassChoice(Parameter):
    """Choice of a class by number or by name; the likeliest one by default.

    Attributes:
        optional: whether a network without class scores will do, and get None.
    """

    name: str = "target"
    label: str = mark("Class")
    optional: bool = False
    unchosen: ClassVar[str] = mark("the likeliest: {top}")

    def start(self, subject: "Subject") -> int:
        """Return the class where none is chosen.

        Raises:
            ModelError: the network puts out no class scores.
        """
        return subject.top_class

    def resolve(self, value: Any, subject: "Subject") -> int | None:
        """Return the class's number; None only where there are no classes and none are needed.

        Raises:
            ModelError: the network puts out no class scores.
            SettingError: it has no class of that number or name.
        """
        subject.answered  # noqa: B018 - a pass that fails says so, and not that there are no classes
        try:
            top = self.start(subject)
        except ModelError:  # it says that there are no classes
            if self.optional and value is None:
                return None
            raise
        names = subject.model.categories
        if value is None:
            return top
        scores = subject.scored.logits
        assert scores is not None  # or there would be no likeliest class
        title = subject.model.title
        return class_number(value, names, len(scores), title, parameter=self.name)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunnerUp(ClassChoice):
    """Choice of a class to compare with another; the second likeliest one by default."""

    unchosen: ClassVar[str] = mark("the second: {top}")

    def start(self, subject: "Subject") -> int:
        """Return the second likeliest class, or the likeliest where it is the only one.

        Raises:
            ModelError: the network puts out no class scores.
        """
        top = subject.top_class
        scores = subject.scored.logits
        assert scores is not None
        return int(scores.topk(min(2, len(scores))).indices[-1]) if len(scores) > 1 else top


@dataclass(frozen=True, kw_only=True, slots=True)
class WholeNumber(Parameter):
    """Whole number from `low` to `high`.

    Attributes:
        unset: a word for the default where that is no number to people, such as −1 for a centre; a
            front end then offers the numbers above it.
    """

    low: int
    high: int
    default: int
    unset: str = ""

    def in_words(self, subject: "Subject") -> str:  # noqa: ARG002
        """Return what to show in place of the default; empty where that is a number."""
        return say(self.unset) if self.unset else ""

    def resolve(self, value: Any, subject: "Subject") -> int:  # noqa: ARG002
        """Return the number.

        Raises:
            SettingError: the value is no whole number in the range.
        """
        if value is None:
            return self.default
        try:
            number = int(value)
        except (TypeError, ValueError, OverflowError):
            number = self.low - 1
        if isinstance(value, float) and value != number:
            number = self.low - 1
        if not self.low <= number <= self.high:
            raise self.refuse(
                value, say("a whole number from {low} to {high}", low=self.low, high=self.high)
            )
        return number


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelChoice(WholeNumber):
    """Number of one channel; whether the chosen layer has it is for the lens to check."""

    name: str = "channel"
    label: str = mark("Channel")
    low: int = 0
    high: int = 999_999
    default: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class PixelCount(WholeNumber):
    """Length on the input in pixels; 0, the default, stands for a share of its shorter side."""

    share: float
    low: int = 0
    high: int = 100_000
    default: int = 0

    def in_words(self, subject: "Subject") -> str:
        """Return how many pixels the default is, as people read it."""
        return say("automatic ({pixels} px)", pixels=self.resolve(None, subject))

    def resolve(self, value: Any, subject: "Subject") -> int:
        """Return the number of pixels, from 1.

        Raises:
            SettingError: the value is no whole number in the range.
        """
        chosen = WholeNumber.resolve(self, value, subject)
        return chosen or max(1, round(self.share * min(subject.shape[1:])))


@dataclass(frozen=True, kw_only=True, slots=True)
class RealNumber(Parameter):
    """Real number from `low` to `high`."""

    low: float
    high: float
    default: float

    def resolve(self, value: Any, subject: "Subject") -> float:  # noqa: ARG002
        """Return the number.

        Raises:
            SettingError: the value is no number in the range.
        """
        if value is None:
            return self.default
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if not self.low <= number <= self.high:
            raise self.refuse(
                value, say("a number from {low:g} to {high:g}", low=self.low, high=self.high)
            )
        return number


@dataclass(frozen=True, kw_only=True, slots=True)
class OneOf(Parameter):
    """Choice among a few words; the first by default."""

    choices: tuple[str, ...]

    def resolve(self, value: Any, subject: "Subject") -> str:  # noqa: ARG002
        """Return the word.

        Raises:
            SettingError: the value is none of the choices.
        """
        if value is None:
            return self.choices[0]
        word = next((each for each in self.choices if each.casefold() == str(value).casefold()), "")
        if not word:
            raise self.refuse(
                value, say("one of {choices}", choices=joined(map(repr, self.choices)))
            )
        return word


@dataclass(frozen=True, kw_only=True, slots=True)
class Switch(Parameter):
    """Switch that is on or off."""

    default: bool = False

    def resolve(self, value: Any, subject: "Subject") -> bool:  # noqa: ARG002
        """Return whether it is on.

        Raises:
            SettingError: the value is neither a truth value nor one of the words for it.
        """
        if value is None:
            return self.default
        known = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
        state = value if isinstance(value, bool) else known.get(str(value).casefold())
        if state is None:
            raise self.refuse(value, say("yes or no"))
        return bool(state)


@dataclass(frozen=True, kw_only=True, slots=True)
class Channels(Parameter):
    """Several channels: ``"0, 3-7"`` or a sequence of numbers; none by default.

    Whether the chosen layer has them is for the lens to check.

    Attributes:
        example: what a person may write.
    """

    name: str = "channels"
    label: str = mark("Channels")
    example: str = "0, 3-7"

    def resolve(self, value: Any, subject: "Subject") -> tuple[int, ...]:  # noqa: ARG002
        """Return the channels' numbers in order, each once.

        Raises:
            SettingError: the value is no list of channel numbers, or names too many.
        """
        if value is None:
            return ()
        wanted = say('channel numbers such as "0, 3-7"')
        if isinstance(value, str) and len(value) > _MOST_CHANNELS:
            raise self.refuse(value, wanted)
        if isinstance(value, int) and not isinstance(value, bool):
            value = (value,)
        if not isinstance(value, Iterable):
            raise self.refuse(value, wanted)
        parts: Iterable[Any] = value.split(",") if isinstance(value, str) else value
        numbers = read_numbers(parts, _MOST_CHANNELS)
        if numbers is None:
            raise self.refuse(value, wanted)
        return numbers


@dataclass(frozen=True, kw_only=True, slots=True)
class MoreImages(Parameter):
    """More images beside the one looked at: a sequence of what `capture` takes.

    Attributes:
        samples: whether the samples in the box are taken where nothing is given, in place of none.
    """

    name: str = "images"
    label: str = mark("More images")
    samples: bool = False

    def resolve(self, value: Any, subject: "Subject") -> tuple[Any, ...]:  # noqa: ARG002
        """Return the images, unread; one that is no sequence stands for itself."""
        if value is None:
            return tuple(str(sample.path) for sample in samples()) if self.samples else ()
        if isinstance(value, str | bytes | PathLike) or not isinstance(value, Iterable):
            value = (value,)
        wrong = next((image for image in value if isinstance(image, int | float | None)), ...)
        if wrong is not ...:
            raise self.refuse(
                value, say("images or a sequence of them, such as ['cat.jpg', 'dog.jpg']")
            )
        return tuple(value)
