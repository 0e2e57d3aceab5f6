"""Read scores: as probabilities, as a number, or as they are where nobody said what they mean.

Every percentage of a class that HookViz writes comes from `Reading.values`, or is a share of the
pixels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from hookviz.errors import HookVizError
from hookviz.language.naming import class_label
from hookviz.language.saying import joined, say
from hookviz.outputs.declaration import (
    BINARY,
    BOXES,
    EMBEDDING,
    KINDS,
    LOGITS,
    MAPS,
    MULTILABEL,
    PROBABILITIES,
)
from hookviz.wording import number, percent

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
        """Return what the number at an index is called in the language that is spoken."""
        if index < len(names) or self.kind in _CLASSES:
            return class_label(index, names)
        return (
            say("number {index}", index=index) if self.kind else say("output {index}", index=index)
        )

    @property
    def question(self) -> str:
        """One line that asks what the numbers are; empty where that is known."""
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
    """Say that an embedding has no classes, and what can be asked instead."""
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
        kind: what they are, one of `KINDS`; empty where a doubt is left.
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
