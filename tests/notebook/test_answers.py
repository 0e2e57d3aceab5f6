"""Questions beside each other: what is left ends, and what is long keeps no click waiting."""

import threading
from collections.abc import Mapping
from contextvars import ContextVar, copy_context
from dataclasses import replace
from typing import Any

import pytest
from torch import Tensor

from hookviz.errors import SettingError
from hookviz.explorer.question import Answer, Question
from hookviz.explorer.subject import Subject, make_subject
from hookviz.explorer.view import Cell, View
from hookviz.notebook import answers
from hookviz.notebook.answers import (
    Answers,
    CommTransport,
    PendingQuestion,
    as_view,
    from_client,
    subject_key,
    to_client,
)
from hookviz.types import Model


def test_words_of_a_person_and_of_a_client_are_read() -> None:
    view = as_view({"channel": 3, "patches": False, "top": 16, "layer": None, "cell": "1,2"})
    assert view == View(channel=3, top=16, cell=Cell(1, 2))
    assert as_view(view) is view
    link = {"layer": "conv1", "channel": "3", "sort": "mean"}
    assert to_client(from_client(link, None), None) == link
    assert from_client({**link, "sort": "odd", "channel": 3, 4: "x"}, None) == View(layer="conv1")
    assert from_client("conv1", None) == View()
    assert to_client(View(network="vgg11", layer="a"), None) == {"layer": "a"}


@pytest.mark.parametrize(
    ("given", "words"), [({"model": "vgg11"}, "Choose from layers"), ({"top": 17}, "top")]
)
def test_what_is_no_choice_here_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        as_view(given)


WAIT = 20  # seconds


PARENT = ContextVar("parent", default="a cell")


class Heard:
    """What is told of questions, in threads of theirs."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, str, Mapping[str, Any]]] = []
        self.news = threading.Condition()

    def tell(self, message: Mapping[str, Any], _data: bytes) -> None:
        with self.news:
            self.messages.append((message["number"], message["kind"], message["facts"]))
            self.news.notify_all()

    def wait_for(self, *ends: tuple[str, str]) -> None:
        with self.news:
            there = lambda: set(ends) <= {each[:2] for each in self.messages}  # noqa: E731
            assert self.news.wait_for(there, WAIT), self.messages


@pytest.fixture
def subject(tiny: Model, noise: Tensor) -> Subject:
    return make_subject(tiny, noise)


def asked(subject: Subject, number: str, name: str = "tiles", **facts: Any) -> PendingQuestion:
    return PendingQuestion(number, Question(name, facts), View(), subject, "en")


def test_answers_come_in_order_in_a_thread_that_ends(subject: Subject) -> None:
    heard, answered = Heard(), []
    of = Answers(heard.tell, lambda each: answered.append(each.number))
    for number in ("1", "2", "3"):
        of.ask(asked(subject, number, "channel", channel=9 if number == "2" else 0))
    heard.wait_for(("3", "answer"))
    assert [each[:2] for each in heard.messages] == [
        ("1", "answer"),
        ("2", "refused"),
        ("3", "answer"),
    ]
    for thread in threading.enumerate():
        if thread.name == "hookviz-widget":
            thread.join(WAIT)
    assert answered == ["1", "3"]
    of.ask(asked(subject, "4"))
    heard.wait_for(("4", "answer"))


def test_what_is_long_is_reported_and_ends_where_nobody_waits(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = threading.Event(), threading.Event()

    def answer(about: Subject, _view: View, question: Question, report: Any) -> Answer:
        if question.name != "own_picture":
            return Answer({})
        with about.take_turn("Making a picture", "maximize", "") as run:
            progress = run.yielding()
            try:
                while True:
                    report(Answer({"running": True}))
                    begun.set()
                    progress(0.5)
            finally:
                ended.set()

    monkeypatch.setattr(answers, "answer", answer)
    heard = Heard()
    of = Answers(heard.tell, lambda _asked: None)
    of.ask(asked(subject, "long", "own_picture"))
    assert begun.wait(WAIT)
    of.ask(asked(subject, "click"))
    heard.wait_for(("long", "partial"), ("click", "answer"))  # beside it
    of.leave("long")
    assert ended.wait(WAIT)
    of.leave("long")  # once more is nothing
    assert {kind for number, kind, _ in heard.messages if number == "long"} == {"partial"}


def test_what_waits_for_its_turn_and_is_left_is_never_begun(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, names = threading.Event(), []

    def answer(_subject: Subject, _view: View, question: Question, _report: Any) -> Answer:
        names.append(question.name)
        assert goes_on.wait(WAIT)
        return Answer({})

    monkeypatch.setattr(answers, "answer", answer)
    heard = Heard()
    of = Answers(heard.tell, lambda _asked: None)
    for number in ("tiles", "field", "head"):
        of.ask(asked(subject, number, number))
    of.leave("field")
    goes_on.set()
    heard.wait_for(("head", "answer"))
    assert names == ["tiles", "head"]
    of.leave_all()


def test_what_fails_is_logged_and_told(
    subject: Subject, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(*_given: Any) -> Answer:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr(answers, "answer", answer)
    heard = Heard()
    Answers(heard.tell, lambda _asked: None).ask(asked(subject, "1"))
    heard.wait_for(("1", "refused"))
    assert "ZeroDivisionError: of ours" in heard.messages[0][2]["says"]
    assert "Traceback" in caplog.text


def test_an_answer_at_once_is_there_before_the_question_returns(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard, answered = Heard(), []
    of = Answers(heard.tell, lambda each: answered.append(each.number))
    of.ask(replace(asked(subject, "1"), at_once=True))
    assert [each[:2] for each in heard.messages] == [("1", "answer")]
    assert answered == ["1"]

    def interrupted(*_given: Any) -> Answer:
        raise KeyboardInterrupt

    monkeypatch.setattr(answers, "answer", interrupted)
    of.ask(replace(asked(subject, "2"), at_once=True))
    assert heard.messages[-1] == ("2", "refused", {"says": "The kernel was interrupted."})


def test_what_is_sent_is_a_word_on_the_clients_newest_message(tiny: Model, noise: Tensor) -> None:
    about = make_subject(tiny, noise)
    line = CommTransport(lambda: about, "en", lambda _message, _files: None, lambda _asked: None)
    parents: list[str] = []
    line.as_a_reply(lambda: parents.append(PARENT.get()))
    arriving = copy_context()
    arriving.run(PARENT.set, "a question")
    arriving.run(line.heard, {"leave": "1"})
    line.as_a_reply(lambda: line.as_a_reply(lambda: parents.append(PARENT.get())))  # in itself, too
    assert parents == ["a cell", "a question"]


def test_a_question_about_something_else_is_left(tiny: Model, noise: Tensor) -> None:
    about = make_subject(tiny, noise)
    said: list[Any] = []
    line = CommTransport(lambda: about, "en", lambda message, _files: said.append(message), print)
    asked = {"ask": "1", "question": {"name": "tiles"}, "view": {}, "theme": "light"}
    line.heard({**asked, "subject": "of before"})
    assert said == []
    assert " " not in subject_key(about)
