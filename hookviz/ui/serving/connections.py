"""Chain the filters that the messages between a page and Streamlit pass.

1. `MessageFilter` drops messages of Streamlit's protocol that are for developers, who could stop
   the server: Streamlit does not say which of them a visitor may send.
2. `flow_control` throttles what a page sends, and disconnects a client that does not read.
3. `SeveralChanges` runs the whole page where a request for one fragment tells of several changes.
   Changes within one task of the browser come in one request, which names the first fragment alone
   (Streamlit says so in the browser's console). In a busy browser a click and the closing of the
   menu beside it come within one task, and only the menu was drawn.
4. `CachedMessages` has Streamlit send whole messages where the page may have dropped its copies.
5. `LongRuns` runs the whole page where a click in a fragment would wait for the end of the run
   before, which can be a minute in the queue. A click in the rest of the page ends it.
6. `Resumption` draws a page anew that returns to its session after its connection was cut.
   Streamlit stops the run, keeps the elements drawn so far, and sends those to the returning page
   with word that the run is over; the page then forgets the widgets that are missing, while the
   server remembers them. The elements of the stopped run are dropped instead. The link that the
   stopped run wrote may be lost too, so the page is sent it again.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from hashlib import blake2b
from math import inf

from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from hookviz.machine.memory import MEGABYTE
from hookviz.serving import capacity
from hookviz.serving.capacity import shutdown
from hookviz.ui.serving import class_route, flow_control, live_route
from hookviz.ui.serving.flow_control import Throttle, send_with_timeout
from hookviz.ui.serving.messages import (
    MessageReader,
    as_full_rerun,
    event_kind,
    is_trigger,
    rerun_request,
)
from hookviz.ui.serving.upload_limits import UploadLimits
from hookviz.ui.streamlit_internals import (
    PAGE_SOCKET,
    XSRF_COOKIE_NAME,
    BackMsg,
    DecodeError,
    ForwardMsg,
    WidgetState,
    abort_connection,
    discard_pending_messages,
    is_same_browser,
    is_session_active,
    is_session_lost,
)

_QUIET, _LOOKS = 0.05, 20  # seconds without a message of the old run, and how often it is looked
_SILENCE = 0.5  # seconds in which a page that comes back asks to be drawn, if it does
_LONGEST = 1 << 13  # bytes of a message that is remembered, or looked at for a link
_MOST = 1000  # sessions whose last request is remembered
_MOST_BROWSERS = 100_000  # sessions whose browser is
_PROTOCOL = b"sec-websocket-protocol"


@dataclass(slots=True)
class LastRequest:
    """Request for the last run of a session, and the link as that run wrote it, if it did."""

    request: BackMsg
    link: str | None = None


class SessionBrowsers(OrderedDict[str, str]):
    """XSRF cookie with which each session began, by Streamlit's id; the oldest are forgotten.

    Whoever learns a session's id would get its page otherwise: Streamlit asks for the id alone.
    """

    def put(self, session: str, scope: Scope) -> None:
        """Note the browser of a session that begins on a connection."""
        self[session] = _cookie(scope)
        if len(self) > _MOST_BROWSERS:
            self.popitem(last=False)

    def checked(self, scope: Scope) -> Scope:
        """Return a connection's scope, without the session of another browser."""
        entries = _subprotocols(scope)
        if len(entries) < 3 or not entries[2]:
            return scope
        known = self.get(entries[2])
        # A browser that keeps no cookies is known by nothing, and has its page back all the same.
        if known is not None and (not known or is_same_browser(_cookie(scope), known)):
            return scope
        headers = [each for each in scope["headers"] if each[0] != _PROTOCOL]
        headers.append((_PROTOCOL, ", ".join(entries[:2]).encode("latin-1")))
        return {**scope, "headers": headers, "subprotocols": entries[:2]}


def _cookie(scope: Scope) -> str:
    return HTTPConnection(scope).cookies.get(XSRF_COOKIE_NAME, "")


def _subprotocols(scope: Scope) -> list[str]:
    """Return the subprotocols as Streamlit reads them, by their places in the first header."""
    lines = (value for name, value in scope["headers"] if name == _PROTOCOL)
    return [each.strip() for each in next(lines, b"").decode("latin-1").split(",")]


class LastRequests(OrderedDict[str, LastRequest]):
    """Last request of each session, by Streamlit's id for it; the oldest are forgotten."""

    def put(self, session: str, request: BackMsg) -> None:
        """Remember the request of a session."""
        self.pop(session, None)
        if request.ByteSize() < _LONGEST:
            self[session] = LastRequest(request)
        if len(self) > _MOST:
            self.popitem(last=False)


class Resumption:
    """Filter that withholds what is left of an old run, and has the page drawn anew.

    Attributes:
        session: Streamlit's id of the session, empty until it is known.
    """

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        last: LastRequests,
        browsers: SessionBrowsers,
    ) -> None:
        """Hold all back until the page is drawn anew, where it has had a session before.

        Args:
            scope: of the WebSocket, checked; its third subprotocol names the session that the page
                had.
            receive: what the page sends.
            send: to the page.
            last: the last requests of all sessions.
            browsers: the browsers of all sessions.
        """
        self._reader = MessageReader(receive)
        self._send, self._last = send, last
        self._scope, self._browsers = scope, browsers
        self.session = ""
        self._previous: str = [*_subprotocols(scope), "", "", ""][2]
        self._connected = False
        self._holding = bool(self._previous)
        self._held = 0

    async def receive(self) -> Message:
        """Return the next message of the page, or what stands in for it."""
        if not self._connected:
            self._connected = True  # what comes first is the opening, before any session
            return await self._reader.next()
        if not self._holding:
            message = await self._reader.next()
        else:
            message = await self._first()
            self._holding = False
        request = rerun_request(message)
        if request is not None and self.session:
            self._last.put(self.session, request)
        return message

    async def send(self, message: Message) -> None:
        """Send a message to the page, unless it is left over from before."""
        data: bytes = message.get("bytes") or b""
        if message["type"] == "websocket.send" and self._holding:
            self._held += 1
            return
        if data and (not self.session or len(data) < _LONGEST):
            self._note(data)
        await self._send(message)

    def close(self) -> None:
        """Cancel the wait for a message, if there is one."""
        self._reader.close()

    async def _first(self) -> Message:
        """Return what the page asks for when it is back, or else the last that it had asked for."""
        if not is_session_active(self._previous):  # it begins another one
            return await self._reader.next()
        self.session = self._previous
        last = self._last.get(self.session)
        message = await self._reader.within(_SILENCE if last else None)
        # Streamlit ignores the old run once there is another; until then nothing of it may remain.
        for _ in range(_LOOKS):
            held = self._held
            discard_pending_messages(self._previous)
            await asyncio.sleep(_QUIET)
            if held == self._held:
                break
        if message is None:
            assert last is not None
            request = _without_clicks(last.request)
        else:
            asked = rerun_request(message)
            if asked is None:
                return message
            request = asked
        if last and last.link and not request.rerun_script.is_history_navigation:
            before = last.request.rerun_script.query_string
            if request.rerun_script.query_string == before != last.link:
                request.rerun_script.query_string = last.link
                event = ForwardMsg()
                event.page_info_changed.query_string = last.link
                await self._send({"type": "websocket.send", "bytes": event.SerializeToString()})
        return {"type": "websocket.receive", "bytes": request.SerializeToString()}

    def _note(self, data: bytes) -> None:
        sent = ForwardMsg.FromString(data)
        kind = sent.WhichOneof("type")
        if kind == "new_session" and not self.session:
            self.session = sent.new_session.initialize.session_id
            self._browsers.put(self.session, self._scope)
        elif kind == "page_info_changed" and self.session in self._last:
            self._last[self.session].link = sent.page_info_changed.query_string


def _without_clicks(request: BackMsg) -> BackMsg:
    """Copy a request without its clicks, which were done, and its cache, which the page lost."""
    copy = BackMsg()
    copy.CopyFrom(request)
    script = copy.rerun_script
    states = [state for state in script.widget_states.widgets if not is_trigger(state)]
    del script.widget_states.widgets[:]
    script.widget_states.widgets.extend(states)
    del script.cached_message_hashes[:]
    script.fragment_id = ""
    return copy


_MESSAGES = {"rerun_script", "stop_script", "file_urls_request", "app_heartbeat"}
_OPERATIONS = {"deferred_file", "dataframe_chunk"}  # others install things on the server
_LARGEST_MESSAGE = 25 * MEGABYTE  # Streamlit ends a connection that sends a larger one

_OURS = (live_route.PATH, class_route.PATH)  # no message of Streamlit's comes there

_log = logging.getLogger(__name__)
_TRIP_S = 1.0  # seconds that a message may take to the page, and the page's next one back
_LONG_RUN_S = 0.3  # seconds after which a person who clicks does not mean to wait
_SERVER_ENDS: Message = {"type": "websocket.disconnect", "code": 1012}


class MessageFilter:
    """ASGI middleware that lets a visitor's messages alone through to Streamlit."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap `app`."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; of a WebSocket that is Streamlit's, drop developers' messages."""
        if scope["type"] == "websocket" and scope["path"] not in _OURS:
            receive = _visitors_messages(receive)
        await self._app(scope, receive, send)


def _visitors_messages(receive: Receive) -> Receive:
    """Drop the messages of a connection that are for developers and their tools."""

    async def next_message() -> Message:
        while True:
            message = await receive()
            data = message.get("bytes")
            if message["type"] != "websocket.receive" or data is None or _is_allowed(data):
                return message

    return next_message


def _is_allowed(data: bytes) -> bool:
    """Return whether a message may pass: a visitor's, or a broken one, which Streamlit ends."""
    if len(data) > _LARGEST_MESSAGE:
        return True
    message = BackMsg()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return True
    kind = message.WhichOneof("type")
    operation = message.backend_operation_request.WhichOneof("payload")
    if kind in _MESSAGES or (kind == "backend_operation_request" and operation in _OPERATIONS):
        return True
    _log.warning("A visitor's message of the kind %s was ignored", operation or kind)
    return False


class CachedMessages:
    """Filter that takes back what a request says is cached where the page may not have it.

    The page keeps large messages, and Streamlit sends a reference in their place. With each request
    the page says which it has. It drops what no run of late has used when a run ends, and may have
    asked for the next run before: then the reference leads to nothing, and Streamlit shows
    "Connection error" (https://github.com/streamlit/streamlit/pull/11302 names the order of events,
    and leaves it open). A file's upload asks for two runs at once, so it is no rare one. The page
    is safe where it knew that the run before had begun when it asked; a request that came too soon
    to be sure of that is taken to have no messages, and gets them whole.
    """

    def __init__(
        self, receive: Receive, send: Send, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Wrap both directions of a connection.

        Args:
            receive: what the page sends.
            send: to the page.
            clock: seconds that only grow.
        """
        self._receive, self._send, self._clock = receive, send, clock
        self._asked = 0  # requests whose runs have not begun, as far as is known
        self._began_at = -inf
        self._ended_at = -inf  # of the last run, while no other was asked for since

    async def receive(self) -> Message:
        """Return the next message of the page."""
        message = await self._receive()
        request = rerun_request(message)
        if request is None:
            return message
        is_sure = self._is_sure()
        self._asked, self._ended_at = self._asked + 1, inf
        if is_sure or not request.rerun_script.cached_message_hashes:
            return message
        del request.rerun_script.cached_message_hashes[:]
        return {**message, "bytes": request.SerializeToString()}

    async def send(self, message: Message) -> None:
        """Send a message to the page, and note whether a run begins or ends with it."""
        kind = event_kind(message)
        if kind == "new_session":
            self._asked, self._began_at = max(0, self._asked - 1), self._clock()
            self._ended_at = inf
        elif kind == "script_finished":
            self._ended_at = self._clock()
        await self._send(message)

    def _is_sure(self) -> bool:
        """Return whether the page knew of the begin of every run that was asked for."""
        now = self._clock()
        if now - self._ended_at >= _TRIP_S:  # of two requests Streamlit may make one run
            self._asked = 0
            return True
        is_long = now - self._began_at >= _TRIP_S and self._ended_at == inf
        return not self._asked and is_long


class SeveralChanges:
    """Filter that runs the whole page where one request tells of changes in several widgets."""

    def __init__(self, receive: Receive) -> None:
        """Wrap `receive`, which gives what the page sends."""
        self._receive = receive
        self._digests: dict[str, bytes] = {}

    async def receive(self) -> Message:
        """Return the next message of the page."""
        message = await self._receive()
        request = rerun_request(message)
        if request is None:
            return message
        states = {state.id: state for state in request.rerun_script.widget_states.widgets}
        before, self._digests = (
            self._digests,
            {name: _digest(state) for name, state in states.items()},
        )
        changes = sum(
            _is_change(state, before.get(name), self._digests[name])
            for name, state in states.items()
        )
        if changes < 2 or not request.rerun_script.fragment_id:
            return message
        return as_full_rerun(message, request)


def _is_change(state: WidgetState, before: bytes | None, now: bytes) -> bool:
    """Return whether a person has changed it; a widget that is new tells its first choice too."""
    if is_trigger(state):
        return True
    if before is None:
        return bool(state.bool_value)  # such as a menu that is opened
    return now != before


def _digest(state: WidgetState) -> bytes:
    return blake2b(state.SerializeToString(deterministic=True), digest_size=16).digest()


class LongRuns:
    """Filter that runs the whole page where a click comes during a run that takes long."""

    def __init__(self, receive: Receive, send: Send, *, long: float = _LONG_RUN_S) -> None:
        """Wrap both directions of a connection.

        Args:
            receive: what the page sends.
            send: to the page.
            long: seconds that a run may take before a click ends it.
        """
        self._receive, self._send, self._long = receive, send, long
        self._running_since: float | None = None

    async def receive(self) -> Message:
        """Return the next message of the page."""
        message = await self._receive()
        since = self._running_since
        if since is None or time.monotonic() - since < self._long:
            return message
        request = rerun_request(message)
        if request is None or not request.rerun_script.fragment_id:
            return message
        return as_full_rerun(message, request)

    async def send(self, message: Message) -> None:
        """Send a message to the page, and note whether a run begins or ends with it."""
        kind = event_kind(message)
        if kind == "new_session":
            self._running_since = time.monotonic()
        elif kind == "script_finished":
            self._running_since = None
        await self._send(message)


class Connections:
    """ASGI middleware that keeps one visitor's connection from holding up the others."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap `app`."""
        self._app = app
        self._last, self._browsers = LastRequests(), SessionBrowsers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the page's connection through all filters, a stream's with a time limit alone."""
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        metrics = capacity.metrics()

        def cut_off() -> None:
            abort_connection(receive)
            if metrics is not None:
                metrics.cut_off()

        if not scope["path"].endswith(PAGE_SOCKET):  # a stream, which bounds its messages itself
            timed = send_with_timeout(send, cut_off, lambda: False, flow_control.SEND_TIMEOUT)
            await self._app(scope, receive, timed)
            return

        def is_lost() -> bool:
            return bool(page.session) and is_session_lost(page.session)

        throttle = Throttle(receive, *([metrics.held_back] if metrics else []))
        timed = send_with_timeout(send, cut_off, is_lost, flow_control.SEND_TIMEOUT)
        several = SeveralChanges(throttle.next)
        cached = CachedMessages(several.receive, timed)
        runs = LongRuns(cached.receive, cached.send)
        scope = self._browsers.checked(scope)
        page = Resumption(scope, runs.receive, runs.send, self._last, self._browsers)

        async def receive_until_end() -> Message:
            message = await page.receive()
            return _SERVER_ENDS if shutdown().has_begun else message

        async def send_until_end(message: Message) -> None:
            if message["type"] == "websocket.send" and shutdown().has_begun:
                return
            # Who leaves before they are let in is passed over by the server.
            is_in = message["type"] != "websocket.accept"
            with _broken_line() if is_in else nullcontext():
                await page.send(message)

        try:
            await self._app(scope, receive_until_end, send_until_end)
        finally:
            page.close()
            throttle.close()


@contextmanager
def _broken_line() -> Iterator[None]:
    """Make an OSError of the block the end of the line.

    Of an OSError Starlette makes the end of receiving too. What a visitor sent before their line
    broke then ends in a traceback of Streamlit's, which takes it for text.

    Raises:
        WebSocketDisconnect: instead of it.
    """
    try:
        yield
    except OSError as error:
        raise WebSocketDisconnect(1006) from error


MIDDLEWARE = [Middleware(Connections), Middleware(MessageFilter), Middleware(UploadLimits)]
"""For `streamlit.App`; the first is the outermost."""
