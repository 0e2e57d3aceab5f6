"""Answer one question of a session's explorer in threads, as messages to its client.

1. `ExplorerAnswer.cached_or_none` answers from the caches, in whichever thread is free.
2. `ExplorerAnswer.compute` takes turns for its passes, and sends progress. It stops at its next
   progress message once the client has gone.

The question ``lens`` asks for a small picture of a lens's result on the image and network on the
screen. A lens that computes for longer than `LENS_MAX_S` shows a sample's picture instead.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, NoReturn

import torch

from hookviz.drawing.dimensions import middle_maps
from hookviz.errors import Cancelled, HookVizError, UnknownNameError
from hookviz.explorer.answering import QUESTIONS, answer
from hookviz.explorer.layers import capture_layer
from hookviz.explorer.question import (
    Answer,
    Answerer,
    NotThereError,
    Question,
    QuestionError,
    Report,
)
from hookviz.explorer.subject import Pinned, Run, Subject
from hookviz.explorer.view import View
from hookviz.language.saying import say
from hookviz.language.speaking import current, speaking
from hookviz.lenses.contract.lens import Lens
from hookviz.lenses.contract.lens import Subject as LensSubject
from hookviz.lenses.contract.preview import SmallAnswer, answer_of_sample, small_answer
from hookviz.lenses.contract.running import find_lens
from hookviz.serving import capacity, logs, turns
from hookviz.serving.capacity import shutdown
from hookviz.serving.memory_reservations import OutOfMemoryError, pass_need
from hookviz.serving.turns import WatchedRun
from hookviz.types import ActivationKey, Capture, Model, ModelInput
from hookviz.ui.serving.explorer_messages import (
    Message,
    message,
    refusal,
    server_ends,
    session_is_over,
    shows_another,
)
from hookviz.ui.serving.explorer_sessions import ExplorerOffer, PinnedScene, Scene
from hookviz.ui.serving.resources import use_model

_PAUSE = 0.25  # seconds between two messages about it
_OWN_PLACE = {
    "own_picture",
    "lens",
}  # questions that take long, beside which the others are answered
_WITHOUT_NUMBERS = {"fields"}  # kinds of turns whose passes compute shapes alone
_WITH_GRADIENTS = {"why", "preview"}  # kinds of turns that may keep all outputs

TakeTurnFor = Callable[[Model, ModelInput, str, str, str], AbstractContextManager[Run]]
"""Takes a turn as `hookviz.explorer.subject.TakeTurn` does, for passes of a network on an input."""

_log = logging.getLogger("hookviz")
LENS_MAX_S = 2.0
"""Seconds for which a lens may compute for its small picture, its waits for others aside."""


class ExplorerAnswer:
    """Answer to one question, as it is computed.

    Attributes:
        is_gone: whether the client has gone; any thread may set it.
    """

    def __init__(
        self,
        offer: ExplorerOffer,
        scene: Scene,
        view: View,
        question: Question,
        *,
        language: str,
        tell: Callable[[Message], None],
    ) -> None:
        """Prepare the answer.

        Args:
            offer: the session's right to ask.
            scene: the network and image.
            view: the layer, channel and settings chosen.
            question: the question.
            language: of the answer's sentences.
            tell: called with the messages of `compute`, in its thread.
        """
        self._offer, self._scene = offer, scene
        self._view, self._question, self._language = view, question, language
        self._tell = tell
        self._started = self._told = time.monotonic()
        self._owner = ("explorer", offer.owner) if question.name in _OWN_PLACE else offer.owner
        self._computes = False
        self.is_gone = False

    def cached_or_none(self) -> Message | None:
        """Answer from the caches; None where a network has to be loaded or run."""
        return self._answered(_refuse_turn)

    def compute(self) -> None:
        """Send the messages of the answer up to its last, waiting for turns."""
        self._computes = True
        last = self._answered(self._take_turn)
        seconds = time.monotonic() - self._started
        with logs.bound(session=self._offer.owner):
            logs.event(
                "answer",
                question=self.known_name,
                outcome=last.kind if last is not None else "stopped",
                ms=round(seconds * 1000, 1),
            )
        if last is not None:
            self._tell(last)

    @property
    def known_name(self) -> str:
        """Question's name, where there is one of that name; else empty."""
        name = self._question.name
        return name if name in QUESTIONS or name in _OF_PAGE else ""

    def _answered(self, take_turn: TakeTurnFor) -> Message | None:
        """Return the answer's last message; None where a turn is refused or the client left."""
        metrics = capacity.metrics()
        last: Message | None
        outcome = "refused"
        try:
            self._check()
            with (
                speaking(self._language),
                capacity.garbage_collector().at_work(),
                self._model() as model,
            ):
                if model.digest == self._scene.model_digest:
                    subject = subject_of(self._scene, model, take_turn)
                    facts, data = answer(
                        subject, self._view, self._question, self._report, _OF_PAGE
                    )
                    last, outcome = message("answer", facts, data), "answered"
                else:  # another one by the same name
                    last = shows_another()
        except Cancelled:
            if not self._computes:
                return None
            outcome = "stopped"
            last = self._end()
        except HookVizError as error:
            last = refusal(_status(error), str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is logged
            outcome = "failed"
            _log.error("A question failed", exc_info=error)
            if metrics is not None:
                metrics.failed()
            with speaking(self._language):
                last = refusal(
                    500, say("Something went wrong on our side, and it has been logged.")
                )
        if metrics is not None:
            metrics.question(self.known_name, outcome)
        return last

    def _end(self) -> Message | None:
        """Return why nobody should wait any more; None where nobody does."""
        if self.is_gone:
            return None
        with speaking(self._language):
            return server_ends() if shutdown().has_begun else session_is_over()

    def _check(self) -> None:
        if self.is_gone or self._offer.is_over or shutdown().has_begun:
            raise Cancelled

    def _report(self, partial: Answer) -> None:
        if not self._computes:
            raise Cancelled
        self._check()
        self._tell(message("partial", *partial))

    @contextmanager
    def _take_turn(
        self, model: Model, model_input: ModelInput, label: str, kind: str, layer: str
    ) -> Iterator[Run]:
        self._check()
        spec = self._scene.choice.spec
        running = say("Running {model}…", model=label) if kind in _OF_MODEL else label

        def on_position(position: int) -> None:
            self._check()
            says = turns.says_position(position)
            self._tell_sometimes("waits", {"position": position, "says": says})

        def report(share: float) -> None:
            if self._question.name in _OWN_PLACE:  # which says itself how far it is
                return
            self._tell_sometimes("progress", {"share": share, "says": running})

        need = None
        if kind not in _WITHOUT_NUMBERS:
            need = pass_need(model, model_input, keeps_all=kind in _WITH_GRADIENTS)
        with turns.turn(
            self._offer.owner,
            label,
            kind,
            model=spec.name,
            layer=layer,
            owner=self._owner,
            need=need,
            on_position=on_position,
        ) as slot:
            yield WatchedRun(slot, self._check, report, on_position)

    def _model(self) -> AbstractContextManager[Model]:
        """Hold the network; `cached_or_none` does not wait for its loading."""
        if self._computes:
            return use_model(self._scene.choice, self._while_loading, self._tell_of_loading)
        return use_model(self._scene.choice, _refuse_turn, _refuse_turn)

    @contextmanager
    def _while_loading(self) -> Iterator[None]:
        self._tell_of_loading()
        yield

    def _tell_of_loading(self) -> None:
        self._check()
        says = say("Loading {model}", model=self._scene.choice.spec.title)
        self._tell(message("progress", {"share": 0.0, "says": says}))

    def _tell_sometimes(self, kind: str, facts: Mapping[str, Any]) -> None:
        now = time.monotonic()
        if now - self._started < turns.PATIENCE or now - self._told < _PAUSE:
            return
        self._told = now
        self._tell(message(kind, facts))


_OF_MODEL = {"capture", "fields", "previews"}  # kinds of turns whose label is the network's title


def _refuse_turn(*_asked: object) -> NoReturn:
    raise Cancelled


def subject_of(scene: Scene, model: Model, take_turn: TakeTurnFor) -> Subject:
    """Return what questions are answered about: a scene with its network."""
    pinned = None if scene.pinned is None else _pinned(scene, scene.pinned, take_turn)
    return scene.with_network(model, partial(take_turn, model, scene.model_input), pinned)


def _pinned(scene: Scene, pinned: PinnedScene, take_turn: TakeTurnFor) -> Pinned:
    def run() -> Capture:
        choice, model_input = pinned.choice, pinned.model_input
        if choice is None or model_input is None:
            raise HookVizError(pinned.error)
        waits = (take_turn, take_turn) if take_turn is _refuse_turn else ()
        with use_model(choice, *waits) as model:
            if model.digest != pinned.model_digest:
                raise HookVizError(say("The network of A is another one now: pin it again."))
            # Nothing of it for the class: its image can be somebody's own.
            take = partial(take_turn, model, model_input)
            subject = Subject(
                model=model,
                model_input=model_input,
                image=scene.image,
                cache=scene.cache,
                take_turn=take,
            )
            layer = ActivationKey.read(pinned.step).layer
            return capture_layer(subject, layer)

    def read() -> torch.Tensor:
        return middle_maps(run()[pinned.step].values)

    given = "" if pinned.model_input is None else pinned.model_input.digest
    digest = f"{pinned.model_digest} {given}"
    return Pinned(pinned.link, digest, pinned.image, pinned.title, pinned.step, read, run)


def _status(error: HookVizError) -> int:
    """Return the HTTP status of what can't be answered."""
    kinds = {QuestionError: 400, NotThereError: 404, OutOfMemoryError: 507}
    return next((status for kind, status in kinds.items() if isinstance(error, kind)), 422)


def answer_lens(subject: Subject, _view: View, facts: Mapping[str, Any], _report: Report) -> Answer:
    """Return the small answer of the lens that ``lens`` names: a picture, or rows of a table.

    Raises:
        NotThereError: there is no such lens.
    """
    try:
        lens = find_lens(str(facts.get("lens", "")))
    except UnknownNameError as error:
        raise NotThereError(str(error)) from error
    key = ("small answer", current(), *subject.key, lens.slug)
    answer: SmallAnswer | None = subject.cache.get(key)
    if answer is None:
        answer = answer_of_sample(lens) if lens.preview.is_dear else _computed(lens, subject)
        subject.cache.put(key, answer, len(answer.picture) + 1000)
    return Answer({"rows": answer.rows, "ofSample": answer.of_sample}, answer.picture)


def _computed(lens: Lens, asked: Subject) -> SmallAnswer:
    with asked.take_turn(say(lens.title), "preview", "") as run:
        until = time.thread_time() + LENS_MAX_S

        def progress(_share: float) -> None:
            if time.thread_time() > until:
                raise Cancelled

        subject = LensSubject(
            asked.model,
            asked.model_input,
            asked.image,
            asked.cache,
            progress=run.yielding(progress),
        )
        try:
            return small_answer(lens, subject)
        except HookVizError:
            return answer_of_sample(lens)
        except Cancelled:
            if time.thread_time() <= until:  # the client has gone
                raise
            return answer_of_sample(lens)


_OF_PAGE: Mapping[str, Answerer] = {"lens": answer_lens}  # beside those of the explorer
