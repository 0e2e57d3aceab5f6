"""Questions of the explorer's client and their answers, and the numbers that they ask about.

A channel, row or column that is not there is refused.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeGuard

from hookviz.errors import HookVizError, shorten
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.language.saying import mark, say


class QuestionError(HookVizError):
    """Raised for what is no question that the explorer asks."""


class NotThereError(HookVizError):
    """Raised where what a question is about is not there: a layer, a channel, a cell, a picture."""


class Question(NamedTuple):
    """Question of the explorer's client.

    Attributes:
        name: one of `hookviz.explorer.answering.QUESTIONS`.
        facts: what it asks about beside the view.
    """

    name: str
    facts: Mapping[str, Any] = {}


class Answer(NamedTuple):
    """Answer to a question: facts that JSON can carry, and a file's bytes where there is one."""

    facts: Mapping[str, Any]
    data: bytes = b""


Report = Callable[[Answer], None]
"""Gets answers on the way to the last one; what it raises ends the question."""

Answerer = Callable[[Subject, View, Mapping[str, Any], Report], Answer]
"""Answers one question, of which it gets the facts."""


def ignore_report(_answer: Answer) -> None:
    """Report nothing on the way."""


_NOT_THERE = {
    "channel": mark("{layer} has no channel {index}: its channels are 0 to {last}."),
    "row": mark("{layer} has no row {index}: its rows are 0 to {last}."),
    "column": mark("{layer} has no column {index}: its columns are 0 to {last}."),
}


def asked_number(facts: Mapping[str, Any], axis: str, count: int, layer: object) -> int:
    """Return the channel, row or column that is asked about: a whole number below `count`.

    Args:
        facts: of the question.
        axis: ``"channel"``, ``"row"`` or ``"column"``.
        count: how many there are.
        layer: of which they are, for the error.

    Raises:
        NotThereError: it is no such number; the message says which there are.

    >>> asked_number({"row": 3}, "row", 4, "conv1")
    3
    """
    given = facts.get(axis)
    if not is_below(given, count):
        raise NotThereError(
            say(_NOT_THERE[axis], layer=layer, index=written(given), last=count - 1)
        )
    return given


def asked_cell(facts: Mapping[str, Any], size: tuple[int, int], layer: object) -> tuple[int, int]:
    """Return row and column of the cell that is asked about, on a map of that size.

    Raises:
        NotThereError: the map has no such row or column.
    """
    rows, columns = size
    return asked_number(facts, "row", rows, layer), asked_number(facts, "column", columns, layer)


def is_below(given: object, count: int, first: int = 0) -> TypeGuard[int]:
    """Return whether something is a whole number from `first` on and below `count`.

    >>> is_below(0, 1), is_below(True, 2), is_below(1.0, 2), is_below("1", 2)
    (True, False, False, False)
    """
    return isinstance(given, int) and not isinstance(given, bool) and first <= given < count


def written(given: object) -> str:
    """Write what was given so that it fits into a sentence, however long it is."""
    try:
        return shorten(repr(given), 40)
    except ValueError:  # Python writes no whole number of more than 4300 digits
        return "…"
