"""Run the streams of frames of a process: who may send, the newest frame, its turn, its answer.

An answer is the length of a text as uint32, little endian, that text in JSON, and pictures one
after the other, whose lengths the text has under ``blobs``.
"""

import json
import secrets
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import isfinite
from typing import Any

import numpy as np

from hookviz.drawing.colormaps import palette_png, quantise
from hookviz.drawing.grid import ScaleLock, json_numbers, tile_facts
from hookviz.drawing.overlay import on_picture
from hookviz.drawing.statistics import strongest_cells
from hookviz.errors import Cancelled, HookVizError
from hookviz.explaining.receptive_fields.receptive_field import receptive_fields
from hookviz.language.saying import mark, say
from hookviz.language.speaking import speaking
from hookviz.live.frames import DrawnFrame, FrameTimer, StreamOptions, Subject, draw
from hookviz.serving import capacity
from hookviz.serving.memory_reservations import own_pass_need
from hookviz.serving.time_limit import TimeLimit
from hookviz.settings import settings
from hookviz.types import Model


def answer(
    number: int, drawn: DrawnFrame, model: Model, options: StreamOptions, timer: FrameTimer
) -> bytes:
    """Encode the answer to a frame: its facts, and the pictures.

    ==========  =======================================================================
    frame       its number
    blobs       bytes of each picture: the grid's sprite, and the picked channel's map; where its
                values are wanted, those alone
    grid        `tile_facts` of the sprite; ``title``, ``legend`` and ``shown`` in words; null where
                values are wanted
    scores      label and share of the five likeliest classes; empty without
    picked      of the picked channel, see `_picked_channel`; null without
    values      of the picked channel's map as numbers, see `_values`; null without
    maxima      the highest value of every channel, in the order of the layer
    ms          milliseconds that each part took
    ==========  =======================================================================
    """
    capture, channel = drawn.capture, options.channel
    with timer.measure("encode"):
        picked = values = grid = None
        pictures = []
        if channel is not None and channel < drawn.grid.shape[0]:
            picked = _picked_channel(drawn, model, channel, options.cell)
            values, levels = _values(drawn, channel) if options.values else (None, b"")
            pictures.append(levels or _map(drawn, channel))
        if values is None:
            grid = _grid(drawn)
            pictures.insert(0, drawn.grid.sprite)
        is_share = capture.answer is not None and capture.answer.is_share
        top = capture.top(5) if is_share else ()
        if not all(isfinite(each.share) for each in top):  # it says nothing
            top = ()
        facts = {
            "frame": number,
            "grid": grid,
            "scores": [[each.name, each.share] for each in top],
            "picked": picked,
            "values": values,
            "maxima": json_numbers(drawn.grid.stats.maximum),
        }
    return packed({**facts, "ms": timer.ms}, pictures)


def _grid(drawn: DrawnFrame) -> dict[str, Any]:
    grid = drawn.grid
    alt = say("{channels} of layer {layer} for this frame.", channels=grid.shown, layer=grid.title)
    facts = tile_facts(grid, alt[0].upper() + alt[1:], grid.sprite)
    return facts | {"title": grid.title, "legend": grid.legend, "shown": grid.shown}


def packed(facts: dict[str, Any], pictures: Sequence[bytes]) -> bytes:
    """Pack facts as JSON, and the pictures that they are about."""
    text = json.dumps({**facts, "blobs": list(map(len, pictures))}, allow_nan=False).encode()
    return b"".join((struct.pack("<I", len(text)), text, *pictures))


def _picked_channel(
    drawn: DrawnFrame, model: Model, channel: int, cell: tuple[int, int] | None
) -> dict[str, Any]:
    """Describe the picked channel: its mean, its maximum and where that is, the value at `cell`.

    ``frame_box`` is what the strongest cell sees: top, left, bottom, right in pixels of the frame;
    null where that is not known.
    """
    values, stats = drawn.maps[channel].numpy(), drawn.grid.stats
    row, column = divmod(int(strongest_cells(values[None])[0]), values.shape[1])
    numbers = np.array([each[channel] for each in (stats.maximum, stats.minimum, stats.mean)])
    highest, lowest, mean = json_numbers(numbers)
    within = cell is not None and cell[0] < values.shape[0] and cell[1] < values.shape[1]
    at = values[cell] if within else np.float32(np.nan)
    return {
        "channel": channel,
        "max": highest,
        "min": lowest,
        "mean": mean,
        "cell": [row, column],
        "frame_box": _frame_box(drawn, model, row, column),
        "at": list(cell) if cell is not None and within else None,
        "value": json_numbers(np.array([at]))[0] if np.isfinite(at) else None,
    }


def _frame_box(drawn: DrawnFrame, model: Model, row: int, column: int) -> list[int] | None:
    model_input = drawn.capture.model_input
    field = receptive_fields(model, model_input).get(drawn.step)
    if field is None or model_input.crop is None or field.cells != tuple(drawn.maps.shape[1:]):
        return None
    size = (drawn.image.height, drawn.image.width)
    return list(on_picture(field.box(row, column), model_input.crop, drawn.image, size))


def _map(drawn: DrawnFrame, channel: int) -> bytes:
    """Draw the channel, one pixel a cell, in the grid's colours, in the grid or not."""
    limits, values = drawn.grid.limits, drawn.maps[channel : channel + 1].numpy()
    one = slice(channel, channel + 1)
    levels = quantise(values, limits.low[one], limits.high[one])
    return palette_png(levels[0], drawn.grid.palette)


def _values(drawn: DrawnFrame, channel: int) -> tuple[dict[str, Any], bytes]:
    """Return the channel's map as a byte a cell, row by row, and what the bytes mean.

    0 is ``low`` and 255 ``high``, its lowest and highest finite value; others stand as ``low``.
    """
    values = drawn.maps[channel].numpy().astype(np.float64)
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    shares = np.nan_to_num((values - low) / (high - low or 1.0), nan=0.0, posinf=0.0, neginf=0.0)
    rows, columns = values.shape
    facts = {"rows": rows, "columns": columns, "low": low, "high": high}
    return facts, np.round(shares * 255).astype(np.uint8).tobytes()


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
        """Start without a frame; the stream's end calls `on_closed`, in whatever thread."""
        self.owner, self.subject = owner, subject
        self.options = StreamOptions()
        self.ended = False
        self._on_closed = on_closed
        self._lock = threading.Lock()
        self._newest: Frame | None = None
        self._held: ScaleLock | None = None
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
    def held(self) -> ScaleLock | None:
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
                capacity.translate_oom(say("This frame")),
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
                    self._held = ScaleLock()
                held = self._held
                go_on = limit.within(self._check_open)
                drawn = draw(frame.data, model, subject, held=held, timer=timer, check=go_on)
                self._passed = drawn.passed  # so that the next frame finds it
                return answer(frame.number, drawn, model, options, timer)
        except Cancelled:
            return None
        except HookVizError as error:
            return json.dumps({"refused": str(error)})

    def _check_open(self, _progress: float) -> None:
        if self.ended:
            raise Cancelled

    def _take(self) -> Frame:
        with self._lock:
            frame, self._newest = self._newest, None
        if frame is None:
            raise Cancelled
        return frame


UNKNOWN, OFF, TOO_MANY = 4401, 4404, 4429
"""Codes with which a connection is closed."""

_GONE = mark("This page may send no frames any more. Load it again to go on.")


@dataclass(eq=False, slots=True)
class _Offer:
    """Session's right to a stream, and its stream while there is one."""

    owner: str
    cookie: str
    token: str
    subject: Subject
    stream: Stream | None = None


class Streams:
    """Registry of a process's streams; a session has one token until its offer is withdrawn."""

    def __init__(self, most: int) -> None:
        """Begin without a stream; `most` may be at once, 0 for none."""
        self._most = most
        self._lock = threading.Lock()
        self._by_owner: dict[str, _Offer] = {}
        self._by_token: dict[str, _Offer] = {}

    @property
    def live(self) -> int:
        """Number of streams now."""
        with self._lock:
            return self._live()

    def offer(self, owner: str, cookie: str, subject: Subject) -> str:
        """Return the session's token, the same until it is withdrawn; its stream shows `subject`.

        Args:
            owner: the session, by `hookviz.ui.serving.queue_wait.session`.
            cookie: the visitor's ``_streamlit_xsrf``, which the stream has to come with.
            subject: what is shown from now on.
        """
        with self._lock:
            offer = self._by_owner.get(owner)
            if offer is None:
                offer = _Offer(owner, cookie, secrets.token_urlsafe(24), subject)
                self._by_owner[owner] = self._by_token[offer.token] = offer
            offer.cookie, offer.subject = cookie, subject
            if offer.stream is not None:
                offer.stream.subject = subject
            return offer.token

    def held(self, owner: str) -> ScaleLock | None:
        """Return the scale that the session's stream holds, if it has one and does."""
        with self._lock:
            offer = self._by_owner.get(owner)
            return offer.stream.held if offer is not None and offer.stream is not None else None

    def withdraw(self, owner: str) -> None:
        """End the session's stream, if it has one, and make its token worthless."""
        with self._lock:
            offer = self._by_owner.pop(owner, None)
            if offer is None:
                return
            del self._by_token[offer.token]
        if offer.stream is not None:
            offer.stream.end(StreamClosed(UNKNOWN, say("The page shows something else now.")))

    def open(
        self,
        token: str,
        is_theirs: Callable[[str], bool],
        on_closed: Callable[[StreamClosed], None],
    ) -> Stream:
        """Open the stream of whoever has this token, and end one that the session had before.

        Args:
            token: from `offer`.
            is_theirs: whether a cookie that was given to `offer` is that of who comes now.
            on_closed: called, in whatever thread, when the stream is over by itself.

        Raises:
            StreamClosed: streams are switched off, this is nobody's token, or there are too many
                streams.
        """
        if not self._most:
            raise StreamClosed(
                OFF, say("Streams of frames are switched off on this server (HOOKVIZ_LIVE=0).")
            )
        with self._lock:
            offer = self._by_token.get(token)
            if offer is None or not is_theirs(offer.cookie):
                raise StreamClosed(UNKNOWN, say(_GONE))
            before = offer.stream
            if before is None and self._live() >= self._most:
                raise StreamClosed(
                    TOO_MANY,
                    say(
                        "{limit} people are live here, which is the most at once (HOOKVIZ_LIVE). "
                        "Try again when one of them has stopped.",
                        limit=self._most,
                    ),
                )
            stream = offer.stream = Stream(offer.owner, offer.subject, on_closed)
        if before is not None:
            before.end(
                StreamClosed(TOO_MANY, say("This session is live on another connection now."))
            )
        return stream

    def close(self, stream: Stream) -> None:
        """Let go of a stream whose connection is over."""
        stream.end(None)
        with self._lock:
            offer = self._by_owner.get(stream.owner)
            if offer is not None and offer.stream is stream:
                offer.stream = None

    def _live(self) -> int:
        return sum(offer.stream is not None for offer in self._by_owner.values())


@cache
def streams() -> Streams:
    """Return the streams of this process, as many as ``HOOKVIZ_LIVE`` says."""
    return Streams(settings().live)
