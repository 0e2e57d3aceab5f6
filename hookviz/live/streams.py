"""Decide who may send frames in this process, and keep what each stream shows."""

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from hookviz.drawing.grid import ScaleLock
from hookviz.language.saying import mark, say
from hookviz.live.stream import Stream, StreamClosed
from hookviz.live.stream_options import Subject
from hookviz.settings import settings

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
