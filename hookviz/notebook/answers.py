"""Answer the questions that come over a kernel's comm, beside its cells and not among them.

A message arrives in a thread of the kernel's, often the one that runs the cells, between two of
them. An answer is computed in another one: what takes seconds would hold up the next cell, and the
word that nobody waits any more could not arrive. It is about a copy of the network, made when the
widget was: a training loop that goes on meanwhile is nothing to it. About a network that can't be
copied it is computed at once, in the thread that runs the cells. A `CommTransport` reads the
client's messages, and sends it the answers. `ViewTrait` is a view as the widget's client has it.
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

_PROGRESS_AFTER_S = 0.5  # after which a person wants to know how far it is
_PROGRESS_EVERY_S = 0.25  # between two messages about it
_LONG = {"own_picture"}  # questions that take long, beside which the others are answered

_ONCE = {*_LONG, "stopped", "file"}
"""Questions that a person has to ask: no answer to them is made unasked."""

_log = logging.getLogger("hookviz")

Send = Callable[[Mapping[str, Any], list[bytes] | None], None]
"""Sends a message to the client, with the bytes of its files."""

_COLOURS = {"light": LIGHT, "dark": DARK}


@dataclass(eq=False, slots=True)
class PendingQuestion:
    """Question on its way to its answer.

    Attributes:
        number: by which the client tells it from others.
        question: its name and parameters.
        view: the view that it is about.
        subject: the network and the image that it is about.
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

    def __init__(self, tell: Tell, answered: Callable[[PendingQuestion], None]) -> None:
        """Start without a question.

        Args:
            tell: called with each message, in those threads.
            answered: called with a question whose answer was sent, likewise.
        """
        self._tell, self._answered = tell, answered
        self._lock = threading.Lock()
        self._open: dict[str, PendingQuestion] = {}
        self._waiting: dict[bool, deque[PendingQuestion]] = {True: deque(), False: deque()}
        self._at_work: set[bool] = set()

    def ask(self, pending: PendingQuestion) -> None:
        """Have a question answered soon."""
        is_long = pending.question.name in _LONG
        with self._lock:
            self._open[pending.number] = pending
        if pending.at_once:
            pending.context.run(self._answer, pending)
            return
        with self._lock:
            self._waiting[is_long].append(pending)
            if is_long in self._at_work:
                return
            self._at_work.add(is_long)
        thread = threading.Thread(
            target=self._work, args=[is_long], name="hookviz-widget", daemon=True
        )
        thread.start()

    def leave(self, number: str) -> None:
        """Drop a question: its client has a newer one, or has gone."""
        with self._lock:
            pending = self._open.pop(number, None)
        if pending is not None:
            pending.is_over = True

    def leave_all(self) -> None:
        """Drop all open questions."""
        for number in list(self._open):
            self.leave(number)

    def _work(self, is_long: bool) -> None:
        waiting = self._waiting[is_long]
        while True:
            with self._lock:
                if not waiting:
                    self._at_work.discard(is_long)
                    return
                pending = waiting.popleft()
            if not pending.is_over:
                pending.context.run(self._answer, pending)

    def _answer(self, pending: PendingQuestion) -> None:
        """Compute one answer, and send its messages up to the last."""
        about = _WatchedQuestion(pending, self._say)
        subject = replace(pending.subject, take_turn=about.take_turn)
        with speaking(pending.language):
            try:
                facts, data = answer(subject, pending.view, pending.question, about.report)
                self._say(pending, "answer", facts, data)
                self._answered(pending)
            except Cancelled:
                return
            except HookVizError as error:
                self._say(pending, "refused", {"says": str(error)})
            except Exception as error:  # noqa: BLE001 - whatever it is, the kernel's log has it
                _log.error("A question of the explorer's failed", exc_info=error)
                says = say(
                    "Something went wrong on our side ({kind}: {error}). The log of the kernel "
                    "says where.",
                    kind=type(error).__name__,
                    error=shorten(str(error), 200),
                )
                self._say(pending, "refused", {"says": says})
            except KeyboardInterrupt:  # of one that is answered at once, in the cells' thread
                self._say(pending, "refused", {"says": say("The kernel was interrupted.")})
        with self._lock:
            self._open.pop(pending.number, None)

    def _say(
        self, pending: PendingQuestion, kind: str, facts: Mapping[str, Any], data: bytes = b""
    ) -> None:
        if not pending.is_over:
            self._tell({"number": pending.number, "kind": kind, "facts": facts}, data)


class _WatchedQuestion:
    """Run of a question, which ends where nobody waits any more, and reports progress if long."""

    def __init__(self, pending: PendingQuestion, tell: Callable[..., None]) -> None:
        self._pending, self._tell = pending, tell
        self._started = self._told = time.monotonic()

    def report(self, partial: Answer) -> None:
        """Tell of an answer on the way to the last one."""
        self._pending.check()
        self._tell(self._pending, "partial", *partial)

    @contextmanager
    def take_turn(self, label: str, kind: str, _layer: str) -> Iterator[Run]:
        """Compute at once: nobody else does in a kernel. `label` is what is run, for a person."""
        self._pending.check()
        says = say("Running {model}…", model=label) if kind in _TITLED_BY_MODEL else label
        yield _KernelRun(self._pending, self._sometimes(says))

    def _sometimes(self, says: str) -> Progress:
        def report(share: float) -> None:
            now = time.monotonic()
            if now - self._started < _PROGRESS_AFTER_S or now - self._told < _PROGRESS_EVERY_S:
                return
            self._told = now
            if self._pending.question.name not in _LONG:  # which says itself how far it is
                self._tell(self._pending, "progress", {"share": share, "says": says})

        return report


_TITLED_BY_MODEL = {"capture", "fields"}  # kinds of turns whose label is the network's title


@dataclass(frozen=True, slots=True)
class _KernelRun:
    """Run without a limit in time, which ends where nobody waits any more."""

    pending: PendingQuestion
    report: Progress

    @property
    def limit(self) -> "_KernelRun":
        """Return the run itself, which has no time limit."""
        return self

    def within(self, progress: Progress = ignore) -> Progress:
        """Return `progress` as one that checks first whether anybody waits."""

        def watched(share: float) -> None:
            self.pending.check()
            self.report(share)
            progress(share)

        return watched

    yielding = within

    def over_torch(self) -> AbstractContextManager[None]:
        """Return a block in which nothing is watched: a layer's call takes no second."""
        return nullcontext()


class _ShownQuestion(NamedTuple):
    """Question currently shown by the client, raw and parsed."""

    message: Mapping[str, Any]
    view: View
    question: Question
    colours: Colours


def subject_key(about: Subject) -> str:
    """Key of a (network, input) pair, without spaces."""
    return f"{about.model.digest}-{about.model_input.digest}"


class CommTransport:
    """Sends answers to one widget over its comm."""

    def __init__(
        self,
        about: Callable[[], Subject],
        language: str,
        send: Send,
        answered: Callable[[PendingQuestion], None],
    ) -> None:
        """Start without a question.

        Args:
            about: returns the current subject of questions.
            language: in which they are answered.
            send: sends a message to the client.
            answered: called with a question whose answer was sent, in another thread.
        """
        self._about, self._language, self._send = about, language, send
        self._answers = Answers(self._tell, answered)
        self._shown_questions: dict[str, _ShownQuestion] = {}  # by the question's name
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
                "question": {"name": str(name), **facts} as raw,
                "view": words,
                "subject": str(key),
                "theme": "light" | "dark" as theme,
            } if key == subject_key(about):
                self._tell({"number": number, "kind": "heard", "facts": {}})
                question = Question(name, {str(each): fact for each, fact in facts.items()})
                view, colours = from_client(words, self), _COLOURS[theme]
                if name not in _ONCE:
                    message = {"question": raw, "view": words, "theme": theme}
                    self._shown_questions[name] = _ShownQuestion(message, view, question, colours)
                about = replace(about, colours=colours)
                pending = PendingQuestion(
                    number, question, view, about, self._language, at_once=at_once
                )
                self._answers.ask(pending)

    def leave_all(self) -> None:
        """Drop all open questions."""
        self._answers.leave_all()

    def answer_ahead(self) -> None:
        """Tell the client what it is about to ask of another subject, before it hears of that.

        So a loop that trains in a cell is seen after each refresh, though a kernel without
        subshells hears no question before the cell's end.
        """
        for message, view, question, colours in list(self._shown_questions.values()):
            about = replace(self._about(), colours=colours)
            with speaking(self._language), suppress(HookVizError):  # then it asks, and hears why
                facts, data = answer(about, view, question)
                self._tell(
                    {"kind": "ahead", "subject": subject_key(about), **message, "facts": facts},
                    data,
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
