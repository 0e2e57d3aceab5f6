"""Serve the WebSocket by which a class's screens follow their teacher's.

Whoever connects says in JSON which class it is and shows a token: the teacher's secret, or the pass
that a page gave to a pupil (``code``, ``token``, and the pass ``before`` a page was loaded again).
From then on it is told what is new in its view (`hookviz.classroom.school_class`), the newest of
it. A teacher's page tells its link (``state``), says of a live camera whether it is shared
(``live``) and in bytes what is seen of it, which pupils get, closes a question (``close``), says
which of the answers that were written are right (``mark``), reveals what is right (``reveal``) and
takes the question away (``away``); a pupil's answers (``vote``, ``guess``). Each says now and then
that it is there, and whether somebody looks (``here``), and is answered; who has said so and falls
silent is gone. Nothing of it is logged.
"""

import asyncio
import json
from collections import Counter
from contextlib import suppress
from typing import Any

from starlette.routing import WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from hookviz import shallow_json
from hookviz.classroom.classes import classes
from hookviz.classroom.link_parameters import LONGEST, read_state
from hookviz.classroom.school_class import AWAY, MAX_FRAME_BYTES, TEACHER_GONE_S, SchoolClass, Seat
from hookviz.errors import ClassroomError
from hookviz.ui.serving.flow_control import TokenBucket
from hookviz.ui.serving.messages import MessageReader
from hookviz.ui.serving.visitors import client_address
from hookviz.ui.streamlit_internals import is_origin_allowed

PATH = "/hookviz/class"

UNKNOWN, FOREIGN, SILENT, TOO_LARGE, TOO_FAST, TOO_MANY = 4401, 4403, 4408, 4413, 4429, 4430
STRANGE = 1007
"""Codes with which a connection is closed; where a class is over it is 1000."""

_LARGEST = LONGEST + 200  # letters of a message
_PATIENCE = 5.0  # seconds in which the first message comes
_MOST_PENDING = 100  # connections of an address that have not said yet whose they are
_BEAT = 30.0  # seconds after which it is looked whether the class is due
_PAUSE = 0.05  # seconds between two messages to one connection
_BURST, _RATE = 60, 20.0  # messages of a connection at once, and a second after them
_SILENCE = 35.0  # seconds after which a page that says it is there, and then nothing, is gone


class _CloseConnection(Exception):  # noqa: N818 - an end, and no error
    """Close the connection with this code."""

    def __init__(self, code: int) -> None:
        self.code = code


class ClassConnections:
    """ASGI application that serves each connection to a class."""

    def __init__(self) -> None:
        self._pending: Counter[str] = Counter()  # by address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a connection until it ends; its seat does not outlive it."""
        socket = WebSocket(scope, receive, send)  # for its headers
        incoming = MessageReader(receive)
        await incoming.next()  # it asks to be let in
        try:
            await send({"type": "websocket.accept"})
            try:
                if not is_origin_allowed(socket.headers.get("origin"), socket.headers.get("host")):
                    raise _CloseConnection(FOREIGN)
                attended, seat, woken = await self._authenticate(incoming, client_address(scope))
                await _serve(attended, seat, woken, incoming, send)
            except _CloseConnection as end:
                await send({"type": "websocket.close", "code": end.code})
        except OSError:
            return  # the line is gone
        finally:
            incoming.close()

    async def _authenticate(
        self, incoming: MessageReader, address: str
    ) -> tuple[SchoolClass, Seat, asyncio.Event]:
        """Return the class and seat of a new connection, and the event that is set at news for it.

        Raises:
            _CloseConnection: it gets none. A wrong code and a wrong token get the same answer, so
                that nobody can search for codes.
        """
        if self._pending[address] >= _MOST_PENDING:
            raise _CloseConnection(TOO_MANY)
        self._pending[address] += 1
        try:
            first = await incoming.within(_PATIENCE)
        finally:
            self._pending[address] -= 1
            if not self._pending[address]:
                del self._pending[address]
        if first is None:
            raise _CloseConnection(SILENT)
        content = _read(first.get("text"))
        code, token, before = (str(content.get(name, "")) for name in ("code", "token", "before"))
        loop, woken = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            loop.call_soon_threadsafe(woken.set)

        attended = classes().by_code(code)
        seat = attended.sit(token, wake, before) if attended else None
        if attended is None or seat is None:
            raise _CloseConnection(UNKNOWN)
        return attended, seat, woken


async def _serve(
    attended: SchoolClass, seat: Seat, woken: asyncio.Event, incoming: MessageReader, send: Send
) -> None:
    """Receive and send until one of both ends.

    Raises:
        _CloseConnection: the visitor is still there.
    """
    tasks = [
        asyncio.ensure_future(_receive(attended, seat, incoming)),
        asyncio.ensure_future(_send_news(attended, seat, woken, send)),
    ]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        attended.rise(seat)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # A class that nobody is connected to any more ends in time too.
        asyncio.get_running_loop().call_later(TEACHER_GONE_S + 1, classes().sweep)


async def _send_news(attended: SchoolClass, seat: Seat, woken: asyncio.Event, send: Send) -> None:
    """Send what is new of the view, the newest of it, until it is over."""
    sent: dict[str, Any] = {}
    seen = 0  # the frame of the teacher's camera that was sent last
    while True:
        woken.clear()
        view = attended.view(seat)
        if seat.follower is not None:
            view["live"] = attended.live.kind
        news = {
            name: value for name, value in view.items() if sent.get(name, _CloseConnection) != value
        }
        if news:
            await send({"type": "websocket.send", "text": json.dumps(news)})
            sent |= news
        if view["over"]:
            raise _CloseConnection(1000)
        frame = attended.live.frame if seat.follower is not None else None
        if frame is not None and frame.number != seen:
            await send({"type": "websocket.send", "bytes": frame.data})
            seen = frame.number
        await asyncio.sleep(_PAUSE)
        try:
            await asyncio.wait_for(woken.wait(), _BEAT)
        except TimeoutError:
            classes().sweep()


async def _receive(attended: SchoolClass, seat: Seat, incoming: MessageReader) -> None:
    """Handle the messages of a connection until it is gone.

    Raises:
        _CloseConnection: there are too many, or one may not come from this seat.
    """
    bucket = TokenBucket(_BURST, _RATE)
    while True:
        # A page that nobody looks at sleeps, and says nothing.
        is_awake = seat.beats and seat.attention != AWAY
        message = await incoming.within(_SILENCE if is_awake else None)
        if message is None:
            raise _CloseConnection(SILENT)
        if message["type"] != "websocket.receive":
            return
        if bucket.take() > 0:
            raise _CloseConnection(TOO_FAST)
        if message.get("bytes") is not None:
            _show_frame(attended, seat, message["bytes"])
            continue
        content = _read(message.get("text"))
        match content:
            case {"here": str(attention)}:
                attended.attend(seat, attention)
            case _ if seat.follower is None:
                _hear_teacher(attended, seat, content)
            case _:
                _hear_pupil(attended, seat, content)


def _hear_teacher(attended: SchoolClass, seat: Seat, content: dict[str, Any]) -> None:
    """Do what a teacher's page asks.

    Raises:
        _CloseConnection: it is nothing that a teacher's page says.
    """
    match content:
        case {"state": str(query)}:
            with suppress(ClassroomError):  # such a view isn't shared; the one before stays
                attended.publish(seat, read_state(query))
        case {"live": str() | None as kind}:
            attended.show_live(seat, kind)
        case {"close": int(number)}:
            attended.close(seat, number)
        case {"mark": str(text), "question": int(number)}:
            attended.mark(seat, number, text)
        case {"reveal": int(number)}:
            attended.reveal(seat, number)
        case {"away": int(number)}:
            attended.put_away(seat, number)
        case _:
            raise _CloseConnection(STRANGE)


def _hear_pupil(attended: SchoolClass, seat: Seat, content: dict[str, Any]) -> None:
    """Do what a pupil's page asks.

    Raises:
        _CloseConnection: it is nothing that a pupil's page says.
    """
    match content:
        case {"vote": int(answer), "question": int(number)}:
            attended.vote(seat, number, answer)
        case {"guess": str(text), "question": int(number)}:
            attended.vote(seat, number, text)
        case _:
            raise _CloseConnection(STRANGE)


def _show_frame(attended: SchoolClass, seat: Seat, data: bytes) -> None:
    """Show a class what its teacher's camera sees.

    Raises:
        _CloseConnection: it is no frame of ours, too large, or from another seat.
    """
    if seat.follower is not None:
        raise _CloseConnection(STRANGE)
    try:
        attended.show_live(seat, data)
    except ClassroomError as error:
        is_large = len(data) > MAX_FRAME_BYTES
        raise _CloseConnection(TOO_LARGE if is_large else STRANGE) from error


def _read(text: str | None) -> dict[str, Any]:
    """Parse a message.

    Raises:
        _CloseConnection: it is too long, or no object in JSON.
    """
    if text is not None and len(text) > _LARGEST:
        raise _CloseConnection(TOO_LARGE)
    try:
        said = shallow_json.parse(text or "")
    except ValueError as error:
        raise _CloseConnection(STRANGE) from error
    if not isinstance(said, dict):
        raise _CloseConnection(STRANGE)
    return said


def route() -> WebSocketRoute:
    """Return the route of the classes' connections."""
    return WebSocketRoute(PATH, ClassConnections())
