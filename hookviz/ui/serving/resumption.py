"""Bring a page back to its session whole after its connection was cut.

Streamlit stops the run that was going on, keeps what it had drawn, and sends that to the page that
comes back, followed by word that the run is over. The page takes it for the whole, and forgets what
was chosen in the widgets that are missing, while the server remembers. So what is left of the old
run is held back, and the page is drawn anew: the page mostly asks for that by itself, but not where
the line was cut before it had heard that a run began.

What the old run wrote into the link may be lost too. The page then asks with the link from before
the click, and would be taken back there; so it is told the link again.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass

from starlette.requests import HTTPConnection
from starlette.types import Message, Receive, Scope, Send

from hookviz.ui.serving.messages import MessageReader, is_trigger, rerun_request
from hookviz.ui.streamlit_internals import (
    XSRF_COOKIE_NAME,
    BackMsg,
    ForwardMsg,
    discard_pending_messages,
    is_same_browser,
    is_session_active,
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
