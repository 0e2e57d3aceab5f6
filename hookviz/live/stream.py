"""Run one person's stream: the newest frame, the options, and its turn to be drawn."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from hookviz.drawing.held_scale import Held
from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.language.speaking import speaking
from hookviz.live.answers import answer
from hookviz.live.frames import FrameTimer, draw
from hookviz.live.stream_options import StreamOptions, Subject
from hookviz.serving import capacity, out_of_memory
from hookviz.serving.memory_reservations import own_pass_need
from hookviz.serving.time_limit import TimeLimit
from hookviz.types import Model


class StreamClosed(Exception):  # noqa: N818 - it is no error that a stream has an end
    """End of a stream, with the reason.

    Attributes:
        code: with which the connection is closed.
        words: why, for a person.
    """

    def __init__(self, code: int, words: str) -> None:
        """Say why the stream ends; what is wrong with one frame alone is no reason."""
        super().__init__(words)
        self.code, self.words = code, words


class _Ended(BaseException):
    """Ends a wait or a pass that nobody wants any more; no handler of errors catches it."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Frame as it came: its number, its file, and when, by `time.perf_counter`."""

    number: int
    data: bytes
    at: float


class Stream:
    """Stream of one connection's frames, newest first; `put` and `next_answer` in two threads.

    Attributes:
        owner: whose it is.
        subject: what is shown; replaced as a whole.
        options: what its viewer wants to know beside the grid; replaced as a whole.
        ended: whether it is over.
    """

    def __init__(
        self, owner: str, subject: Subject, on_closed: Callable[[StreamClosed], None]
    ) -> None:
        """Begin without a frame; the stream's end calls `on_closed`, in whatever thread."""
        self.owner, self.subject = owner, subject
        self.options = StreamOptions()
        self.ended = False
        self._on_closed = on_closed
        self._lock = threading.Lock()
        self._newest: Frame | None = None
        self._held: Held | None = None
        self._passed: Model | None = None

    def put(self, number: int, data: bytes) -> bool:
        """Take a frame, and return whether one that waited was dropped for it."""
        with self._lock:
            skipped = self._newest is not None
            self._newest = Frame(number, data, time.perf_counter())
            return skipped

    @property
    def waits(self) -> bool:
        """Whether a frame waits to be drawn."""
        return self._newest is not None

    @property
    def held(self) -> Held | None:
        """Scale that is held now, if it is."""
        held = self._held
        return replace(held) if held is not None and self.options.hold else None

    def end(self, why: StreamClosed | None) -> None:
        """Stop whatever waits or computes for it soon, and tell `why`, if given, to `on_closed`."""
        with self._lock:
            first, self.ended = not self.ended, True
            self._newest = None
        if first and why is not None:
            self._on_closed(why)

    def next_answer(self) -> bytes | str | None:
        """Draw the newest frame, or say in JSON why it can't be; None at the end.

        It waits in the queue behind those who explore, and streams take their turns one after the
        other. The frame that is newest when the turn comes is drawn.
        """
        subject = self.subject
        with speaking(subject.language):
            return self._draw_newest(subject)

    def _draw_newest(self, subject: Subject) -> bytes | str | None:
        try:
            with (
                out_of_memory.translate_oom(say("This frame")),
                subject.use_model() as model,
                capacity.reservations().hold(
                    say("This frame"), own_pass_need(model, subject.size), self._check_open
                ),
                capacity.queue().turn(("live", self.owner), self._check_open, background=True),
            ):
                frame = self._take()
                limit = TimeLimit.from_now(say("A frame"))
                timer = FrameTimer({"wait": round((time.perf_counter() - frame.at) * 1000, 2)})
                options = self.options
                if not options.hold:
                    self._held = None
                elif self._held is None:
                    self._held = Held()
                held = self._held
                go_on = limit.within(self._check_open)
                drawn = draw(frame.data, model, subject, held=held, timer=timer, check=go_on)
                self._passed = drawn.passed  # so that the next frame finds it
                return answer(frame.number, drawn, model, options, timer)
        except _Ended:
            return None
        except HookVizError as error:
            return json.dumps({"refused": str(error)})

    def _check_open(self, _progress: float) -> None:
        if self.ended:
            raise _Ended

    def _take(self) -> Frame:
        with self._lock:
            frame, self._newest = self._newest, None
        if frame is None:
            raise _Ended
        return frame
