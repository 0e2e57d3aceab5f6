"""The WebSocket by which a page sends a camera's frames and gets what is drawn of each.

A frame is its number as uint32, little endian, and a JPEG, WebP or PNG file; a text says what is
picked (`hookviz.live.stream_options`). What comes back are `hookviz.live.answers`, or in JSON why a
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
from streamlit.web.server.server_util import is_xsrf_enabled
from streamlit.web.server.starlette.starlette_app_utils import validate_xsrf_token
from streamlit.web.server.starlette.starlette_server_config import XSRF_COOKIE_NAME
from streamlit.web.server.starlette.starlette_websocket import _is_origin_allowed

from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.language.speaking import speaking
from hookviz.live import frames
from hookviz.live.stream import Stream, StreamClosed
from hookviz.live.stream_options import read_stream_options
from hookviz.live.streams import streams
from hookviz.serving import capacity, logs
from hookviz.settings import settings
from hookviz.ui.languages import language_of
from hookviz.ui.serving.incoming import Incoming

PATH = "/hookviz/live"

FOREIGN, SILENT, TOO_LARGE, TOO_FAST = 4403, 4408, 4413, 4429
_STRANGE, _OURS = 1007, 1011  # the WebSocket's own codes

_SILENCE = 60.0  # seconds without a message, while nothing is computed
_FRAMES = 40.0  # answers a second
_MESSAGES = 200.0  # that may come a second, and at once; more are a flood

_log = logging.getLogger("hookviz")


class Live:
    """One connection after the other, as an ASGI application."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a connection until it ends, which its hooks, frames and turn do not outlive."""
        socket = WebSocket(scope, receive, send)  # for its headers
        with speaking(language_of(socket)):
            await self._until_it_ends(socket, Incoming(receive), send)

    async def _until_it_ends(self, socket: WebSocket, incoming: Incoming, send: Send) -> None:
        await incoming.next()  # it asks to be let in
        over: asyncio.Future[StreamClosed] = asyncio.get_running_loop().create_future()
        try:
            await send({"type": "websocket.accept"})
            try:
                stream = _open(socket, over)
                await _serve(stream, incoming, send, over)
            except StreamClosed as end:
                await _tell(send, {"over": end.words})
                await send({"type": "websocket.close", "code": end.code})
        except OSError:
            return  # the line is gone
        finally:
            incoming.close()


def _open(socket: WebSocket, over: asyncio.Future[StreamClosed]) -> Stream:
    """The stream of who knocks.

    Raises:
        StreamClosed: they get none.
    """
    if not _is_origin_allowed(socket.headers.get("origin"), socket.headers.get("host")):
        raise StreamClosed(FOREIGN, say("Frames are taken from this server's own page alone."))
    loop, come = asyncio.get_running_loop(), socket.cookies.get(XSRF_COOKIE_NAME)

    def settle(why: StreamClosed) -> None:
        if not over.done():
            over.set_result(why)

    def told(why: StreamClosed) -> None:
        loop.call_soon_threadsafe(settle, why)

    token = socket.query_params.get("token", "")
    return streams().open(token, partial(_is_same, come), told)


def _is_same(come: str | None, offered: str) -> bool:
    """Whether two cookies are of one browser; each time it is set, the same token looks another."""
    return not is_xsrf_enabled() or validate_xsrf_token(offered, come)


async def _serve(
    stream: Stream, incoming: Incoming, send: Send, over: asyncio.Future[StreamClosed]
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
    """What one stream has had, and whether something waits to be computed."""

    def __init__(self) -> None:
        self.answered = self.refused = self.skipped = 0
        self.waiting = asyncio.Event()
        self.computing = False


async def _read(stream: Stream, incoming: Incoming, tally: _Tally) -> StreamClosed | None:
    """Take in what comes; why the stream is over, None where the visitor is gone."""
    room, at = _MESSAGES, time.monotonic()
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
        now = time.monotonic()
        room, at = min(_MESSAGES, room + (now - at) * _MESSAGES) - 1, now
        if room < 0:
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
    """Send what frames become, one after the other; None where there is nobody to send it to."""
    loop, metrics = asyncio.get_running_loop(), capacity.metrics()
    while True:
        await tally.waiting.wait()
        tally.waiting.clear()
        if not stream.waits:  # it came while a turn was waited for, and was drawn in it
            continue
        due, tally.computing = loop.time() + 1 / _FRAMES, True
        try:
            made = await loop.run_in_executor(_threads(), stream.next_answer)
        except Exception:  # noqa: BLE001 - whatever it is, it is logged and the stream ends
            _log.exception("A frame failed")
            if metrics is not None:
                metrics.failed()
            return StreamClosed(
                _OURS, say("Something went wrong on our side, and it has been logged.")
            )
        if made is None:
            return None
        if isinstance(made, bytes):
            await send({"type": "websocket.send", "bytes": made})
            tally.answered += 1
        else:
            await send({"type": "websocket.send", "text": made})
            tally.refused += 1
        if metrics is not None:
            metrics.frame("done" if isinstance(made, bytes) else "refused")
        tally.computing = False
        await asyncio.sleep(max(0.0, due - loop.time()))


@cache
def _threads() -> ThreadPoolExecutor:
    """A thread for each stream, which mostly waits for its turn in it."""
    return ThreadPoolExecutor(settings().live, "live")


async def _tell(send: Send, told: dict[str, str]) -> None:
    await send({"type": "websocket.send", "text": json.dumps(told)})


def route() -> WebSocketRoute:
    """The stream of frames as a route for the server."""
    return WebSocketRoute(PATH, Live())
