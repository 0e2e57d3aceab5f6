"""Serve the WebSocket by which a page sends a camera's frames and gets what is drawn of each.

A frame is its number as uint32, little endian, and a JPEG, WebP or PNG file; a text says what is
picked (`hookviz.live.frames`). What comes back are `hookviz.live.streams`, or in JSON why a
frame could not be drawn (``refused``) or why the stream is over (``over``). One frame is
computed at a time; of those that come meanwhile the newest is kept. No frame is stored, logged or
cached.
"""

import asyncio
import json
import logging
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache, partial

from starlette.routing import WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.language.speaking import speaking
from hookviz.live import frames
from hookviz.live.frames import read_stream_options
from hookviz.live.streams import Stream, StreamClosed, streams
from hookviz.serving import capacity, logs
from hookviz.settings import settings
from hookviz.ui.languages import language_of
from hookviz.ui.serving.flow_control import TokenBucket
from hookviz.ui.serving.messages import MessageReader
from hookviz.ui.streamlit_internals import XSRF_COOKIE_NAME, is_origin_allowed, is_same_browser

PATH = "/hookviz/live"

FOREIGN, SILENT, TOO_LARGE, TOO_FAST = 4403, 4408, 4413, 4429
_STRANGE, _OURS = 1007, 1011  # the WebSocket's own codes

_SILENCE = 60.0  # seconds without a message, while nothing is computed
_FRAMES = 40.0  # answers a second
_MESSAGES = 200  # that may come a second, and at once; more are a flood

_log = logging.getLogger("hookviz")


class Live:
    """ASGI application that serves each stream of frames."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a connection until it ends, which its hooks, frames and turn do not outlive."""
        socket = WebSocket(scope, receive, send)  # for its headers
        with speaking(language_of(socket)):
            await self._until_it_ends(socket, MessageReader(receive), send)

    async def _until_it_ends(self, socket: WebSocket, incoming: MessageReader, send: Send) -> None:
        await incoming.next()  # it asks to be let in
        over: asyncio.Future[StreamClosed] = asyncio.get_running_loop().create_future()
        try:
            await send({"type": "websocket.accept"})
            try:
                stream = _open(socket, over)
                await _serve(stream, incoming, send, over)
            except StreamClosed as end:
                await send({"type": "websocket.send", "text": json.dumps({"over": end.words})})
                await send({"type": "websocket.close", "code": end.code})
        except OSError:
            return  # the line is gone
        finally:
            incoming.close()


def _open(socket: WebSocket, over: asyncio.Future[StreamClosed]) -> Stream:
    """Open the stream of a new connection.

    Raises:
        StreamClosed: it gets none.
    """
    if not is_origin_allowed(socket.headers.get("origin"), socket.headers.get("host")):
        raise StreamClosed(FOREIGN, say("Frames are taken from this server's own page alone."))
    loop, cookie = asyncio.get_running_loop(), socket.cookies.get(XSRF_COOKIE_NAME)

    def settle(why: StreamClosed) -> None:
        if not over.done():
            over.set_result(why)

    def on_close(why: StreamClosed) -> None:
        loop.call_soon_threadsafe(settle, why)

    token = socket.query_params.get("token", "")
    return streams().open(token, partial(is_same_browser, cookie), on_close)


async def _serve(
    stream: Stream, incoming: MessageReader, send: Send, over: asyncio.Future[StreamClosed]
) -> None:
    """Read and answer until one of both ends.

    Raises:
        StreamClosed: the stream is over, and the visitor still there.
    """
    metrics, tally = capacity.metrics(), _Tally()
    started = time.perf_counter()
    tasks: set[asyncio.Future[StreamClosed | None]] = {
        asyncio.ensure_future(_read(stream, incoming, tally)),
        asyncio.ensure_future(_answer(stream, send, tally)),
        asyncio.ensure_future(over),
    }
    outcome = "done"
    try:
        with metrics.live() if metrics is not None else nullcontext():
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            why = task.result()
            if why is not None:
                raise why
    except StreamClosed:
        outcome = "refused"
        raise
    finally:
        streams().close(stream)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        logs.event(
            "live",
            session=stream.owner,
            outcome=outcome,
            frames=tally.answered,
            refused=tally.refused,
            skipped=tally.skipped,
            ms=round((time.perf_counter() - started) * 1000),
        )


class _Tally:
    """Counts of one stream's frames, and whether one waits or is computed."""

    def __init__(self) -> None:
        self.answered = self.refused = self.skipped = 0
        self.waiting = asyncio.Event()
        self.computing = False


async def _read(stream: Stream, incoming: MessageReader, tally: _Tally) -> StreamClosed | None:
    """Take in messages, and return why the stream is over; None where the visitor is gone."""
    bucket = TokenBucket(_MESSAGES, _MESSAGES)
    while True:
        message = await incoming.within(_SILENCE)
        if message is None:
            if tally.computing:
                continue
            return StreamClosed(
                SILENT, say("No frame has come for a minute, so this stream is over.")
            )
        if message["type"] != "websocket.receive":
            return None
        if bucket.take() > 0:
            return StreamClosed(
                TOO_FAST,
                say("More than {limit:.0f} messages came in a second.", limit=_MESSAGES),
            )
        text, data = message.get("text"), message.get("bytes")
        if text is not None:
            try:
                stream.options = read_stream_options(text)
            except HookVizError as error:
                return StreamClosed(_STRANGE, str(error))
            continue
        assert data is not None
        if len(data) > frames.MOST_BYTES:
            return StreamClosed(
                TOO_LARGE,
                say(
                    "A frame of {byte_count:,} bytes came, and {limit:,} is the most. As "
                    "large as the network's input is enough.",
                    byte_count=len(data),
                    limit=frames.MOST_BYTES,
                ),
            )
        (number,) = struct.unpack("<I", data[:4].ljust(4, b"\0"))
        tally.skipped += stream.put(number, data[4:])
        tally.waiting.set()


async def _answer(stream: Stream, send: Send, tally: _Tally) -> StreamClosed | None:
    """Send the answer to each frame, and return why the stream is over; None where it has ended."""
    loop, metrics = asyncio.get_running_loop(), capacity.metrics()
    while True:
        await tally.waiting.wait()
        tally.waiting.clear()
        if not stream.waits:  # it came while a turn was waited for, and was drawn in it
            continue
        due, tally.computing = loop.time() + 1 / _FRAMES, True
        try:
            answer = await loop.run_in_executor(_threads(), stream.next_answer)
        except Exception:  # noqa: BLE001 - whatever it is, it is logged and the stream ends
            _log.exception("A frame failed")
            if metrics is not None:
                metrics.failed()
            return StreamClosed(
                _OURS, say("Something went wrong on our side, and it has been logged.")
            )
        if answer is None:
            return None
        if isinstance(answer, bytes):
            await send({"type": "websocket.send", "bytes": answer})
            tally.answered += 1
        else:
            await send({"type": "websocket.send", "text": answer})
            tally.refused += 1
        if metrics is not None:
            metrics.frame("done" if isinstance(answer, bytes) else "refused")
        tally.computing = False
        await asyncio.sleep(max(0.0, due - loop.time()))


@cache
def _threads() -> ThreadPoolExecutor:
    """Return the pool with a thread for each stream, which mostly waits for its turn in it."""
    return ThreadPoolExecutor(settings().live, "live")


def route() -> WebSocketRoute:
    """Return the route of the streams of frames."""
    return WebSocketRoute(PATH, Live())
