"""Answer the questions that come over a kernel's comm, beside its cells and not among them.

A message arrives in a thread of the kernel's, often the one that runs the cells, between two of
them. An answer is computed in another one: what takes seconds would hold up the next cell, and the
word that nobody waits any more could not arrive. It is about a copy of the network, made when the
widget was: a training loop that goes on meanwhile is nothing to it. About a network that can't be
copied it is computed at once, in the thread that runs the cells. A `Line` reads the client's
messages, and sends it the answers. `ViewTrait` is a view as the widget's client has it.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import traitlets

from hookviz.errors import Cancelled, HookVizError, one_of, shorten
from hookviz.explorer.answering import answer
from hookviz.explorer.client_files import DARK, LIGHT
from hookviz.explorer.question import Answer, Question
from hookviz.explorer.subject import Colours, Run, Subject
from hookviz.explorer.view import View, choices
from hookviz.language.saying import say
from hookviz.language.speaking import speaking
from hookviz.types import Progress, ignore


class ViewTrait(traitlets.TraitType[View, View | Mapping[str, object]]):
    """A `View`; given as one, or as the words of a link: ``{"layer": "conv1", "sort": "mean"}``."""

    default_value = View()
    info_text = "a View, or the words of a link"

    def validate(self, obj: Any, value: Any) -> View:
        """Return the view.

        Raises:
            SettingError: a word is none that a link has; the message has the nearest.
            TraitError: it is neither a view nor words.
        """
        if not isinstance(value, View | Mapping):
            self.error(obj, value)
        return as_view(value)


def as_view(given: View | Mapping[str, object]) -> View:
    """Return a view, or that of a link's words, whose values may be numbers, too.

    Raises:
        SettingError: a word is none that a link has, or none of its values; it has the nearest.
    """
    if isinstance(given, View):
        return given
    words = {choice.word: choice for choice in choices().values() if not choice.is_page}
    link = {}
    for word, value in given.items():
        values = words[one_of(say("choice"), word, words)].values
        if value is None:
            continue
        text = str(value).lower() if isinstance(value, bool) else str(value)
        link[word] = text if values is None else one_of(word, text, values)
    return View.of_link(link)


def to_client(view: View, _widget: object) -> dict[str, str]:
    """Write a view as its client has it: a link's words, without those of a page around."""
    pages = {choice.word for choice in choices().values() if choice.is_page}
    return {word: text for word, text in view.link().items() if word not in pages}


def from_client(words: Any, _widget: object) -> View:
    """Read a view of the client's, which can be anything."""
    if not isinstance(words, Mapping):
        return View()
    return View.of_link({str(word): text for word, text in words.items() if isinstance(text, str)})


Tell = Callable[[Mapping[str, Any], bytes], None]
"""Sends a message to the widget's client: facts, and a file's bytes if there is one."""

_PATIENCE = 0.5  # seconds after which a person wants to know how far it is
_EVERY = 0.25  # seconds between two messages about it
_LONG = {"own_picture"}  # questions that take long, beside which the others are answered

_ONCE = {*_LONG, "stopped", "file"}
"""Questions that a person has to ask: no answer to them is made unasked."""

_log = logging.getLogger("hookviz")

Send = Callable[[Mapping[str, Any], list[bytes] | None], None]
"""Sends a message to the client, with the bytes of its files."""

_COLOURS = {"light": LIGHT, "dark": DARK}


@dataclass(eq=False, slots=True)
class Asked:
    """Question on its way to its answer.

    Attributes:
        number: by which the client tells it from others.
        question: what is asked.
        view: in which view.
        subject: about what.
        language: in which it is answered.
        is_over: whether nobody waits for it any more; set in whatever thread.
        at_once: whether it is answered in the thread that brings it.
        context: of the message that brought it, to which the answer belongs.
    """

    number: str
    question: Question
    view: View
    subject: Subject
    language: str
    is_over: bool = False
    at_once: bool = False
    context: Context = field(default_factory=copy_context)

    def check(self) -> None:
        """Raise where nobody waits any more."""
        if self.is_over:
            raise Cancelled


class Answers:
    """Questions of one widget, answered in order of arrival in a thread that ends by itself.

    What takes long has a second such thread, so that a click is answered beside it.
    """

    def __init__(self, tell: Tell, answered: Callable[[Asked], None]) -> None:
        """Answer nothing yet.

        Args:
            tell: gets the messages, in those threads.
            answered: gets a question whose answer was told, likewise.
        """
        self._tell, self._answered = tell, answered
        self._lock = threading.Lock()
        self._open: dict[str, Asked] = {}
        self._waiting: dict[bool, deque[Asked]] = {True: deque(), False: deque()}
        self._at_work: set[bool] = set()

    def ask(self, asked: Asked) -> None:
        """Have a question answered soon."""
        is_long = asked.question.name in _LONG
        with self._lock:
            self._open[asked.number] = asked
        if asked.at_once:
            asked.context.run(self._answer, asked)
            return
        with self._lock:
            self._waiting[is_long].append(asked)
            if is_long in self._at_work:
                return
            self._at_work.add(is_long)
        thread = threading.Thread(
            target=self._work, args=[is_long], name="hookviz-widget", daemon=True
        )
        thread.start()

    def leave(self, number: str) -> None:
        """Answer a question no more: its client has a newer one, or has gone."""
        with self._lock:
            asked = self._open.pop(number, None)
        if asked is not None:
            asked.is_over = True

    def leave_all(self) -> None:
        """Answer nothing of what was asked so far."""
        for number in list(self._open):
            self.leave(number)

    def _work(self, is_long: bool) -> None:
        waiting = self._waiting[is_long]
        while True:
            with self._lock:
                if not waiting:
                    self._at_work.discard(is_long)
                    return
                asked = waiting.popleft()
            if not asked.is_over:
                asked.context.run(self._answer, asked)

    def _answer(self, asked: Asked) -> None:
        """Tell of one answer until its last message."""
        about = _Watched(asked, self._say)
        subject = replace(asked.subject, take_turn=about.take_turn)
        with speaking(asked.language):
            try:
                facts, data = answer(subject, asked.view, asked.question, about.report)
                self._say(asked, "answer", facts, data)
                self._answered(asked)
            except Cancelled:
                return
            except HookVizError as error:
                self._say(asked, "refused", {"says": str(error)})
            except Exception as error:  # noqa: BLE001 - whatever it is, the kernel's log has it
                _log.error("A question of the explorer's failed", exc_info=error)
                says = say(
                    "Something went wrong on our side ({kind}: {error}). The log of the kernel "
                    "says where.",
                    kind=type(error).__name__,
                    error=shorten(str(error), 200),
                )
                self._say(asked, "refused", {"says": says})
            except KeyboardInterrupt:  # of one that is answered at once, in the cells' thread
                self._say(asked, "refused", {"says": say("The kernel was interrupted.")})
        with self._lock:
            self._open.pop(asked.number, None)

    def _say(self, asked: Asked, kind: str, facts: Mapping[str, Any], data: bytes = b"") -> None:
        if not asked.is_over:
            self._tell({"number": asked.number, "kind": kind, "facts": facts}, data)


class _Watched:
    """Turn of a question: it ends where nobody waits any more, and is told of where it is long."""

    def __init__(self, asked: Asked, tell: Callable[..., None]) -> None:
        self._asked, self._tell = asked, tell
        self._started = self._told = time.monotonic()

    def report(self, partial: Answer) -> None:
        """Tell of an answer on the way to the last one."""
        self._asked.check()
        self._tell(self._asked, "partial", *partial)

    @contextmanager
    def take_turn(self, label: str, kind: str, _layer: str) -> Iterator[Run]:
        """Compute at once: nobody else does in a kernel. `label` is what is run, for a person."""
        self._asked.check()
        says = say("Running {model}…", model=label) if kind in _OF_MODEL else label
        yield _Turn(self._asked, self._sometimes(says))

    def _sometimes(self, says: str) -> Progress:
        def report(share: float) -> None:
            now = time.monotonic()
            if now - self._started < _PATIENCE or now - self._told < _EVERY:
                return
            self._told = now
            if self._asked.question.name not in _LONG:  # which says itself how far it is
                self._tell(self._asked, "progress", {"share": share, "says": says})

        return report


_OF_MODEL = {"capture", "fields"}  # kinds of turns whose label is the network's title


@dataclass(frozen=True, slots=True)
class _Turn:
    """Run without a limit in time, which ends where nobody waits any more."""

    asked: Asked
    told: Progress

    @property
    def limit(self) -> "_Turn":
        """Return the turn itself, which has no end of its own."""
        return self

    def within(self, progress: Progress = ignore) -> Progress:
        """Return `progress` as one that checks first whether anybody waits."""

        def watched(share: float) -> None:
            self.asked.check()
            self.told(share)
            progress(share)

        return watched

    yielding = within

    def over_torch(self) -> AbstractContextManager[None]:
        """Return a block in which nothing is watched: a layer's call takes no second."""
        return nullcontext()


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
                if name not in _ONCE:
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
