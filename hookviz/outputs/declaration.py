"""Declare what a network's output means: which part of it answers, and what its numbers are."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from torch import Tensor

from hookviz.errors import SettingError, one_of, shorten
from hookviz.language.saying import joined, mark, say

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
"""What an output can be, with the words for it."""


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
        SettingError: there is no such kind.

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

    >>> from hookviz.outputs.declaration import as_output
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
