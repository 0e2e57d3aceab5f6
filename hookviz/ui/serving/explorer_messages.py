"""Pack what is told of a question, and send it: a message after the other, or one alone.

A refusal that comes first is an HTTP status with ``{"says": words}``, and everything else is 200.
"""

import asyncio
import json
import struct
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from starlette.responses import JSONResponse, Response
from starlette.types import Send

from hookviz.language.saying import say
from hookviz.ui.serving.messages import MessageReader

_CHUNK = 1 << 16  # bytes that have to find room on the connection at once
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Encoding": "identity",  # pictures are packed, and the rest is not worth the time
    "X-Accel-Buffering": "no",  # else a proxy keeps back what is told of a wait
}
_MEDIA_TYPE = "application/octet-stream"


class Message(NamedTuple):
    """What is told of a question.

    Attributes:
        kind: ``"waits"``, ``"progress"``, ``"partial"``, ``"answer"`` or ``"refused"``; nothing
            follows one of the last two.
        facts: what it says beside that, for JSON.
        packed: all of it as it is sent.
    """

    kind: str
    facts: Mapping[str, Any]
    packed: bytes

    @property
    def is_last(self) -> bool:
        """Whether nothing follows."""
        return self.kind in ("answer", "refused")


def message(kind: str, facts: Mapping[str, Any], data: bytes = b"") -> Message:
    """Pack a message: its length, the length of a text, that text in JSON, and a file's bytes.

    Lengths are uint32, little endian, the first of all that follows it.
    """
    assert "kind" not in facts
    text = json.dumps({"kind": kind, **facts}, allow_nan=False, separators=(",", ":")).encode()
    length = struct.pack("<II", 4 + len(text) + len(data), len(text))
    return Message(kind, facts, b"".join((length, text, data)))


def refusal(status: int, says: str) -> Message:
    """Return the message that a question is refused, with an HTTP status."""
    return message("refused", {"status": status, "says": says})


def session_is_over() -> Message:
    """Return the refusal where a session has ended, or never was."""
    return refusal(410, say("This page's session is over. Load it again to go on."))


def shows_another() -> Message:
    """Return the refusal where the page has gone on to another image or network."""
    return refusal(409, say("The page shows something else now."))


def too_much(status: int) -> Message:
    """Return the refusal where no more is computed now."""
    return refusal(status, say("Too much is being computed now. Try again in a moment."))


def server_ends() -> Message:
    """Return the refusal where the server is about to end."""
    return refusal(503, say("The server is being started again. Wait a moment, and try again."))


class Outbox:
    """Messages of a thread on their way to the loop: the newest, and the last is never dropped."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._newest: Message | None = None
        self._arrived = asyncio.Event()

    def put(self, message: Message) -> None:
        """Put a message, from any thread, in place of one that was not taken yet."""
        call_from_thread(self._loop, partial(self._set, message))

    def _set(self, message: Message) -> None:
        self._newest = message
        self._arrived.set()

    async def take(self) -> Message:
        """Wait for a message."""
        await self._arrived.wait()
        self._arrived.clear()
        assert self._newest is not None
        return self._newest


def call_from_thread(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Have a loop call something soon, from any thread; a loop that has ended calls nothing."""
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:  # the server has ended meanwhile
        return


async def send_all(outbox: Outbox, incoming: MessageReader, send: Send) -> None:
    """Send the messages as they come, until the last one or until the visitor has gone."""
    going = asyncio.ensure_future(incoming.next())
    has_begun = False
    coming = asyncio.ensure_future(outbox.take())
    try:
        while True:
            await asyncio.wait((going, coming), return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                return
            newest = coming.result()
            if not has_begun and newest.is_last:
                await send_one(newest, send)
                return
            if not has_begun:
                headers = Response(headers=_HEADERS, media_type=_MEDIA_TYPE).raw_headers
                del headers[next(i for i, (n, _) in enumerate(headers) if n == b"content-length")]
                start = {"type": "http.response.start", "status": 200, "headers": headers}
                await send(start)
                has_begun = True
            await _send_body(newest.packed, send, more=not newest.is_last)
            if newest.is_last:
                return
            coming = asyncio.ensure_future(outbox.take())
    finally:
        going.cancel()
        coming.cancel()


async def send_one(last: Message, send: Send) -> None:
    """Send the only message of an answer, with its length and its status."""
    if last.kind == "refused":
        await refuse(last, send)
        return
    headers = Response(last.packed, headers=_HEADERS, media_type=_MEDIA_TYPE).raw_headers
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await _send_body(last.packed, send, more=False)


async def _send_body(data: bytes, send: Send, *, more: bool) -> None:
    """Send bytes by pieces, each of which has its time to find room on the line."""
    for start in range(0, max(1, len(data)), _CHUNK):
        is_more = more or start + _CHUNK < len(data)
        piece = data[start : start + _CHUNK]
        await send({"type": "http.response.body", "body": piece, "more_body": is_more})


async def refuse(why: Message, send: Send, headers: Mapping[str, str] | None = None) -> None:
    """Send a refusal as an HTTP status with its words."""
    answer = JSONResponse(
        {"says": why.facts["says"]},
        why.facts["status"],
        {"Cache-Control": "no-store", **(headers or {})},
    )
    await send(
        {"type": "http.response.start", "status": answer.status_code, "headers": answer.raw_headers}
    )
    await send({"type": "http.response.body", "body": answer.body})
