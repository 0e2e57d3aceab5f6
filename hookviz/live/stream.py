"""One person's stream: the newest frame, what is wished of it, and its turn to be drawn."""

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
from hookviz.live.frames import Clock, draw
from hookviz.live.stream_options import StreamOptions
from hookviz.live.subject import Subject
from hookviz.serving import capacity, out_of_memory
from hookviz.serving.time_limit import TimeLimit


class StreamClosed(Exception):  # noqa: N818 - it is no error that a stream has an end
    """A stream that is over, and why.

    Attributes:
        code: with which the connection is closed.
        words: for a person.
    """

    def __init__(self, code: int, words: str) -> None:
        """Not to be raised for what is wrong with one frame alone."""
        super().__init__(words)
        self.code, self.words = code, words


class _Ended(BaseException):
    """Ends a wait or a pass that nobody wants any more, and is an error to nothing on its way."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame as it came: its number, its file, and when that was."""

    number: int
    data: bytes
    at: float


class Stream:
    """Frames of one connection, the newest first; `put` in one thread, `next_answer` in another.

    Attributes:
        owner: whose it is.
        subject: what is shown; replaced as a whole.
        options: what is told beside the grid; replaced as a whole.
        ended: whether it is over.
    """

    def __init__(self, owner: str, subject: Subject, told: Callable[[StreamClosed], None]) -> None:
        """Nothing has come yet; `told` hears in whatever thread that the stream is over."""
        self.owner, self.subject = owner, subject
        self.options = StreamOptions()
        self.ended = False
        self._told = told
        self._lock = threading.Lock()
        self._newest: Frame | None = None
        self._held: Held | None = None

    def put(self, number: int, data: bytes) -> bool:
        """Take a frame in place of one that waits; whether there was one."""
        with self._lock:
            skipped = self._newest is not None
            self._newest = Frame(number, data, time.perf_counter())
            return skipped

    @property
    def waits(self) -> bool:
        """Whether a frame is there to be drawn."""
        return self._newest is not None

    @property
    def held(self) -> Held | None:
        """The scale that is held now, if it is."""
        held = self._held
        return replace(held) if held is not None and self.options.hold else None

    def end(self, why: StreamClosed | None) -> None:
        """Whatever waits or computes for it stops soon; `why` is told, where it is given."""
        with self._lock:
            first, self.ended = not self.ended, True
            self._newest = None
        if first and why is not None:
            self._told(why)

    def next_answer(self) -> bytes | str | None:
        """What the newest frame became, or in JSON why it could not be drawn; None at the end.

        It waits in the queue behind those who explore, and streams take their turns one after the
        other. Which frame it is, is settled when the turn comes.
        """
        subject = self.subject
        with speaking(subject.language):
            return self._answered(subject)

    def _answered(self, subject: Subject) -> bytes | str | None:
        try:
            with (
                out_of_memory.translate_oom(say("This frame")),
                subject.use_model() as model,
                capacity.queue().turn(("live", self.owner), self._go_on, background=True),
            ):
                frame = self._take()
                limit = TimeLimit.from_now(say("A frame"))
                clock = Clock({"wait": round((time.perf_counter() - frame.at) * 1000, 2)})
                options = self.options
                if not options.hold:
                    self._held = None
                elif self._held is None:
                    self._held = Held()
                held = self._held
                go_on = limit.within(self._go_on)
                drawn = draw(frame.data, model, subject, held=held, clock=clock, check=go_on)
                return answer(frame.number, drawn, model, options, clock)
        except _Ended:
            return None
        except HookVizError as error:
            return json.dumps({"refused": str(error)})

    def _go_on(self, _place: float) -> None:
        if self.ended:
            raise _Ended

    def _take(self) -> Frame:
        with self._lock:
            frame, self._newest = self._newest, None
        if frame is None:
            raise _Ended
        return frame
