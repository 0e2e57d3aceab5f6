"""Messages between a widget and its client; the rest of them in test_widget.py."""

from contextvars import ContextVar, copy_context
from typing import Any

from torch import Tensor

from hookviz.explorer.given import subject_given
from hookviz.notebook.line import Line, key_of
from hookviz.types import Model

PARENT = ContextVar("parent", default="a cell")


def test_what_is_sent_is_a_word_on_the_clients_newest_message(tiny: Model, noise: Tensor) -> None:
    about = subject_given(tiny, noise)
    line = Line(lambda: about, "en", lambda _message, _files: None, lambda _asked: None)
    parents: list[str] = []
    line.as_a_reply(lambda: parents.append(PARENT.get()))
    arriving = copy_context()
    arriving.run(PARENT.set, "a question")
    arriving.run(line.heard, {"leave": "1"})
    line.as_a_reply(lambda: line.as_a_reply(lambda: parents.append(PARENT.get())))  # in itself, too
    assert parents == ["a cell", "a question"]


def test_a_question_about_something_else_is_left(tiny: Model, noise: Tensor) -> None:
    about = subject_given(tiny, noise)
    said: list[Any] = []
    line = Line(lambda: about, "en", lambda message, _files: said.append(message), print)
    asked = {"ask": "1", "question": {"name": "tiles"}, "view": {}, "theme": "light"}
    line.heard({**asked, "subject": "of before"})
    assert said == []
    assert " " not in key_of(about)
