"""Define questions of the explorer's client and their answers, and check their numbers.

A channel, row or column that does not exist is refused.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeGuard

from hookviz.errors import HookVizError, shorten
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.language.saying import mark, say


class QuestionError(HookVizError):
    """Raised for an unknown question, or one with wrong facts."""


class NotThereError(HookVizError):
    """Raised for a question about a layer, channel, cell or picture that does not exist."""


class Question(NamedTuple):
    """Question of the explorer's client.

    Attributes:
        name: one of `hookviz.explorer.answering.QUESTIONS`.
        facts: its parameters beside the view.
    """

    name: str
    facts: Mapping[str, Any] = {}


class Answer(NamedTuple):
    """Answer to a question: facts that JSON can carry, and a file's bytes where there is one."""

    facts: Mapping[str, Any]
    data: bytes = b""


Report = Callable[[Answer], None]
"""Gets partial answers; if it raises, the question ends."""

Answerer = Callable[[Subject, View, Mapping[str, Any], Report], Answer]
"""Answers one question by its facts."""


def ignore_report(_answer: Answer) -> None:
    """Drop a partial answer."""


_NOT_THERE = {
    "channel": mark("{layer} has no channel {index}: its channels are 0 to {last}."),
    "row": mark("{layer} has no row {index}: its rows are 0 to {last}."),
    "column": mark("{layer} has no column {index}: its columns are 0 to {last}."),
}


def asked_number(facts: Mapping[str, Any], axis: str, count: int, layer: object) -> int:
    """Return the channel, row or column of a question: a whole number below `count`.

    Args:
        facts: of the question.
        axis: ``"channel"``, ``"row"`` or ``"column"``.
        count: number of channels, rows or columns.
        layer: its name, for the error.

    Raises:
        NotThereError: it is another value; the message has the allowed ones.

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
    """Return row and column of a question's cell, on a map of `size`.

    Raises:
        NotThereError: the row or column does not exist.
    """
    rows, columns = size
    return asked_number(facts, "row", rows, layer), asked_number(facts, "column", columns, layer)


def is_below(given: object, count: int, first: int = 0) -> TypeGuard[int]:
    """Return whether a value is a whole number from `first` on and below `count`.

    >>> is_below(0, 1), is_below(True, 2), is_below(1.0, 2), is_below("1", 2)
    (True, False, False, False)
    >>> is_below(3, 8, first=3), is_below(2, 8, first=3)
    (True, False)
    """
    return isinstance(given, int) and not isinstance(given, bool) and first <= given < count


def written(given: object) -> str:
    """Write a value in at most 40 letters, for a sentence."""
    try:
        return shorten(repr(given), 40)
    except ValueError:  # Python writes no whole number of more than 4300 digits
        return "…"
