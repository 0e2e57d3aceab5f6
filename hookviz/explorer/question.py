"""Say what a question of the explorer's client is, and what an answer."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hookviz.errors import HookVizError
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View


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
