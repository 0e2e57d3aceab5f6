"""Talk with the widget's client over the kernel's comm: its questions, and what is said of them."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import replace
from typing import Any, NamedTuple

from hookviz.errors import HookVizError
from hookviz.explorer.answering import answer
from hookviz.explorer.client_files import DARK, LIGHT
from hookviz.explorer.question import Question
from hookviz.explorer.subject import Colours, Subject
from hookviz.explorer.view import View
from hookviz.language.speaking import speaking
from hookviz.notebook.answers import ONCE, Answers, Asked
from hookviz.notebook.chosen import from_client

Send = Callable[[Mapping[str, Any], list[bytes] | None], None]
"""Sends a message to the client, with the bytes of its files."""

_COLOURS = {"light": LIGHT, "dark": DARK}


class _Seen(NamedTuple):
    """Question whose answer the client shows: as it asked, and as that was read."""

    told: Mapping[str, Any]
    view: View
    question: Question
    colours: Colours


def key_of(about: Subject) -> str:
    """Return what tells an input in a network from others; without a space."""
    return f"{about.model.digest}-{about.model_input.digest}"


class Line:
    """Line to the client of one widget."""

    def __init__(
        self,
        about: Callable[[], Subject],
        language: str,
        send: Send,
        answered: Callable[[Asked], None],
    ) -> None:
        """Ask and answer nothing yet.

        Args:
            about: returns what questions are about now.
            language: in which they are answered.
            send: sends a message to the client.
            answered: gets a question whose answer was told, in another thread.
        """
        self._about, self._language, self._send = about, language, send
        self._answers = Answers(self._tell, answered)
        self._seen: dict[str, _Seen] = {}  # by the question's name
        self._newest: Context | None = None

    def heard(self, content: Any, *, at_once: bool = False) -> None:
        """Take a message of the client's, which can be anything.

        With JupyterLab's subshells it arrives while a cell runs, in another thread than that.

        Args:
            content: the message.
            at_once: answer in this thread, before this returns.
        """
        self._newest = copy_context()
        about = self._about()  # once: a refresh may put another one in its place
        match content:
            case {"leave": str(number)}:
                self._answers.leave(number)
            case {
                "ask": str(number),
                "question": {"name": str(name), **facts} as asked,
                "view": words,
                "subject": str(key),
                "theme": "light" | "dark" as theme,
            } if key == key_of(about):
                self._tell({"number": number, "kind": "heard", "facts": {}})
                question = Question(name, {str(each): fact for each, fact in facts.items()})
                view, colours = from_client(words, self), _COLOURS[theme]
                if name not in ONCE:
                    told = {"question": asked, "view": words, "theme": theme}
                    self._seen[name] = _Seen(told, view, question, colours)
                about = replace(about, colours=colours)
                asked_now = Asked(number, question, view, about, self._language, at_once=at_once)
                self._answers.ask(asked_now)

    def leave_all(self) -> None:
        """Answer nothing of what was asked so far."""
        self._answers.leave_all()

    def answer_ahead(self) -> None:
        """Tell the client what it is about to ask of another subject, before it hears of that.

        So a loop that trains in a cell is seen after each refresh, though a kernel without
        subshells hears no question before the cell's end.
        """
        for told, view, question, colours in list(self._seen.values()):
            about = replace(self._about(), colours=colours)
            with speaking(self._language), suppress(HookVizError):  # then it asks, and hears why
                facts, data = answer(about, view, question)
                self._tell(
                    {"kind": "ahead", "subject": key_of(about), **told, "facts": facts}, data
                )

    def as_a_reply(self, send: Callable[[], None]) -> None:
        """Send something as a word on the client's newest message.

        A kernel with subshells hands the client's next message to the thread that it was last told
        something in. Told by a cell that refreshes as it trains, that would be the cell's own, and
        a click would wait for its end.
        """
        context = copy_context() if self._newest is None else self._newest.copy()
        context.run(send)

    def _tell(self, message: Mapping[str, Any], data: bytes = b"") -> None:
        self._send(message, [data] if data else None)
