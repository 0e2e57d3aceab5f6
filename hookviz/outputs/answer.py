"""Declare the meaning of a network's output, and read its scores: as probabilities or a number.

Every percentage of a class that HookViz writes comes from `Reading.values`, or is a share of the
pixels.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from hookviz.errors import HookVizError, SettingError, one_of, shorten
from hookviz.language.naming import class_label
from hookviz.language.saying import joined, mark, say
from hookviz.wording import number, percent

Part: TypeAlias = str | int | tuple[str | int, ...] | Callable[[Any], Tensor] | None
"""Which part of an output answers: a key, an index, a path of these, or a function of it."""

LOGITS, PROBABILITIES, BINARY, MULTILABEL = "logits", "probabilities", "binary", "multilabel"
NUMBER, EMBEDDING, MAPS, BOXES = "number", "embedding", "maps", "boxes"
KINDS: Mapping[str, str] = {
    LOGITS: mark("a score per class, before a softmax"),
    PROBABILITIES: mark("probabilities"),
    BINARY: mark("one logit, for two labels"),
    MULTILABEL: mark("a logit per label, each for itself"),
    NUMBER: mark("a number"),
    EMBEDDING: mark("an embedding"),
    MAPS: mark("a map per class"),
    BOXES: mark("boxes"),
}
"""Kinds of output, each with the words for it."""


@dataclass(frozen=True, slots=True)
class Output:
    """Declaration of what a network's output means.

    Attributes:
        kind: one of `KINDS`; empty where it is to be found from the network and its numbers.
        part: which part answers: a key, an index, a path such as ``("heads", 0)``, or a function
            of the output; None for the logits, or the one tensor of floats where there is one.
        unit: of a number, such as ``"years"``.
        is_said: whether a person said so; otherwise the network states it, and numbers that
            contradict it leave a doubt.

    Raises:
        SettingError: the kind does not exist.

    >>> network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 1))
    >>> model = hookviz.wrap(network, output="binary", categories=["well", "ill"])
    >>> len(hookviz.capture(model, torch.zeros(1, 3, 2, 2), ()).predictions())
    2
    """

    kind: str = ""
    part: Part = None
    unit: str = ""
    is_said: bool = True
    token: str = field(default_factory=partial(secrets.token_hex, 8), compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.kind:
            one_of(say("kind of output"), self.kind, KINDS)

    @property
    def key(self) -> str:
        """Key of what is computed with it, for a cache."""
        return "-".join(filter(None, (self.kind, self.unit, self.token if self.part else "")))


def as_output(value: Output | Part) -> Output:
    """Return the declaration that is written as a kind, a key, an index or a function.

    Raises:
        SettingError: it is none of these.

    >>> from hookviz.outputs.answer import as_output
    >>> as_output("binary").kind, as_output("logits_b").part, as_output(0).part
    ('binary', 'logits_b', 0)
    """
    if isinstance(value, Output):
        return value
    if isinstance(value, str) and value in KINDS:
        return Output(value)
    if isinstance(value, str | int | tuple) or callable(value):
        return Output(part=value)
    raise SettingError(
        say(
            "output={value} says nothing; give one of {kinds}, the key or index of the part that "
            "answers, a function of the output, or hookviz.Output(…).",
            value=shorten(repr(value)),
            kinds=joined(map(repr, KINDS)),
        )
    )


_SHARES = frozenset((LOGITS, PROBABILITIES, BINARY, MULTILABEL, BOXES))
_CLASSES = _SHARES | {MAPS}


@dataclass(frozen=True, slots=True)
class Reading:
    """How scores are read: as shares or as they are.

    Attributes:
        kind: one of `KINDS`; empty where a doubt is left.
        unit: of a number.
    """

    kind: str = ""
    unit: str = ""

    @property
    def is_share(self) -> bool:
        """Whether `values` are 0…1 and written as percentages."""
        return self.kind in _SHARES

    def values(self, scores: Tensor) -> Tensor:
        """Return probabilities where the scores have some, else the scores, ``(…, K)``.

        Logits become their softmax; one logit and several labels their sigmoid; what is a
        probability already stays.
        """
        if self.kind == LOGITS:
            return scores.softmax(-1)
        return scores.sigmoid() if self.kind in (BINARY, MULTILABEL) else scores

    def loss(self, scores: Tensor, target: int) -> Tensor:
        """Return −log of the target's probability, or −score where there is none, ``(N,)``."""
        if self.kind == LOGITS:
            return -scores.log_softmax(-1)[:, target]
        if self.kind in (BINARY, MULTILABEL):
            return -functional.logsigmoid(scores[:, target])
        if self.is_share:
            return -scores[:, target].clamp_min(torch.finfo(scores.dtype).tiny).log()
        return -scores[:, target]

    def text(self, value: float) -> str:
        """Write one of `values`: ``"42.0 %"``, ``"57 years"`` or ``"−1.32"``."""
        if self.is_share:
            return percent(value)
        return f"{number(value)} {self.unit}".rstrip()

    def label(self, index: int, names: Sequence[str]) -> str:
        """Return the name of the number at an index, in the current language."""
        if index < len(names) or self.kind in _CLASSES:
            return class_label(index, names)
        return (
            say("number {index}", index=index) if self.kind else say("output {index}", index=index)
        )

    @property
    def question(self) -> str:
        """One line that asks for the meaning of the numbers; empty where it is known."""
        if self.kind:
            return ""
        return say(
            "Nobody said what the output's numbers are, so they are shown as scores. "
            "wrap(network, output=…) says it: {kinds}.",
            kinds=joined(map(repr, KINDS)),
        )


class Top(NamedTuple):
    """One of an answer's highest values, as it is shown.

    Attributes:
        number: of the class.
        name: of the class, in the language that is spoken.
        share: length of its bar, 0…1; 0 where the value is no share.
        text: the value as it is written.
    """

    number: int
    name: str
    share: float
    text: str


@dataclass(frozen=True, eq=False, slots=True)
class Answer:
    """What a network answered for one image.

    Attributes:
        scores: float32 on the CPU, ``(K,)``, before any softmax.
        reading: what they are.
        areas: of maps, which share of the pixels is of each class, ``(K,)``; else None.
        boxes: of a detector, a row for each box: left, top, right and bottom as shares 0…1 of the
            input, the class's number and the score, ``(M, 6)``; else None.
    """

    scores: Tensor
    reading: Reading
    areas: Tensor | None = None
    boxes: Tensor | None = None

    @property
    def as_scores(self) -> "Scores":
        """The same as the answer for a batch of one image."""
        areas = None if self.areas is None else self.areas[None]
        boxes = None if self.boxes is None else (self.boxes,)
        return Scores(self.scores[None], self.reading.kind, areas, boxes)

    @property
    def has_classes(self) -> bool:
        """Whether each score is of something that can be asked about."""
        return self.reading.kind != EMBEDDING

    @property
    def is_share(self) -> bool:
        """Whether `values` are 0…1 and written as percentages."""
        return self.areas is not None or self.reading.is_share

    @property
    def values(self) -> Tensor:
        """Probabilities, shares of the pixels, or the scores where there is neither, ``(K,)``."""
        return self.reading.values(self.scores) if self.areas is None else self.areas

    @property
    def word(self) -> str:
        """What `values` are called."""
        if self.areas is not None:
            return say("share of the pixels")
        return say("probability") if self.is_share else self.reading.unit or say("score")

    def likeliest(self, count: int) -> tuple[tuple[int, float], ...]:
        """Return the numbers of the classes of the highest values, with these.

        Raises:
            HookVizError: it is an embedding, which has no classes.
        """
        if not self.has_classes:
            raise HookVizError(no_classes(len(self.scores)))
        top = self.values.topk(min(count, len(self.scores)))
        return tuple(zip(top.indices.tolist(), top.values.tolist(), strict=True))

    def top(self, count: int, names: Sequence[str]) -> tuple[Top, ...]:
        """Return the highest `values` as they are shown; none of an embedding, or without a box."""
        if not self.has_classes:
            return ()
        return tuple(
            Top(
                index,
                self.reading.label(index, names),
                value if self.is_share else 0.0,
                self.text(value),
            )
            for index, value in self.likeliest(count)
            if value or self.reading.kind != BOXES
        )

    def text(self, value: float) -> str:
        """Write one of `values`."""
        return percent(value) if self.areas is not None else self.reading.text(value)


def no_classes(count: int) -> str:
    """Return the sentence for an embedding without classes, with an alternative."""
    return say(
        "The network puts out an embedding of {count:,} numbers, which has no classes. Ask about "
        "a layer's channel, by like= how near it is to another image's, or by target= about a "
        "function of the output.",
        count=count,
    )


class Scores(NamedTuple):
    """What a network answers of each image.

    Attributes:
        values: a row of scores an image, ``(N, K)``.
        kind: one of `KINDS`; empty where a doubt is left.
        areas: of maps, which share of the pixels each class has, ``(N, K)``, if that was asked.
        boxes: of boxes, those of each image as `Answer.boxes` has them, if that was asked.
    """

    values: Tensor
    kind: str
    areas: Tensor | None = None
    boxes: tuple[Tensor, ...] | None = None

    @property
    def reading(self) -> Reading:
        """How they are read."""
        return Reading(self.kind)
