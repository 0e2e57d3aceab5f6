"""Serve the questions of the explorer's client: a request each, answered by messages.

``POST /hookviz/explorer?token=…&lang=…`` asks, with ``{"subject": key, "view": link parameters,
"question": {"name": …, facts}, "address": what the page's says}`` in JSON; ``POST
/hookviz/explorer/address`` says the last alone. What comes back are the messages of
`hookviz.ui.serving.explorer_messages`: of what is kept the answer alone, and of what is computed
before it that it waits and how far it is.
"""

import asyncio
import math
import threading
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from hookviz import shallow_json
from hookviz.explorer.question import Question
from hookviz.explorer.view import View
from hookviz.language.saying import say
from hookviz.language.speaking import speaking
from hookviz.serving import capacity
from hookviz.serving.capacity import shutdown
from hookviz.ui.languages import language_of
from hookviz.ui.serving import flow_control
from hookviz.ui.serving.explorer_answers import ExplorerAnswer
from hookviz.ui.serving.explorer_messages import (
    Message,
    Outbox,
    call_from_thread,
    refusal,
    refuse,
    send_all,
    send_one,
    server_ends,
    session_is_over,
    shows_another,
    too_much,
)
from hookviz.ui.serving.explorer_sessions import ExplorerOffer, explorer_sessions
from hookviz.ui.serving.flow_control import send_with_timeout
from hookviz.ui.serving.messages import MessageReader
from hookviz.ui.streamlit_internals import (
    XSRF_COOKIE_NAME,
    abort_connection,
    is_origin_allowed,
    is_same_browser,
)

PATH = "/hookviz/explorer"
_ADDRESS = "/address"

LARGEST = 20_000
"""Bytes of a request, at most; one of the client's has a few hundred."""

_PATIENCE = 10.0  # seconds in which a request has to have come
_MOST_PARAMETERS = 60  # of a view
_MOST_ASKED = 24  # questions of a session that are computed at once; the client asks fewer kinds
_MOST_COMPUTED = 256  # of all sessions, each in a thread that mostly waits for its turn
_MOST_WAITING = 4096  # of all sessions, that wait until one of these threads has ended
_QUICK_THREADS = 2  # that answer out of what is kept: more of them only wait for each other


class _RefusedError(Exception):
    """Says why a question gets no answer, with an HTTP status."""

    def __init__(self, why: Message, **headers: str) -> None:
        super().__init__(why.facts["says"])
        self.why, self.headers = why, headers


class _Asked(NamedTuple):
    """What a request asks: about which scene, by its key, in which view."""

    key: str
    view: View
    question: Question


class _Begun(NamedTuple):
    """Question that is to be computed: whose it is, its answer, and where that is told."""

    offer: ExplorerOffer
    answering: ExplorerAnswer
    outbox: Outbox


class ExplorerQuestions:
    """ASGI application that answers each question."""

    def __init__(self) -> None:
        self._computed = 0
        self._waiting = deque[_Begun]()
        self._quick = ThreadPoolExecutor(_QUICK_THREADS, "explorer-quick")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; nothing of it is left where its visitor goes away."""
        request = Request(scope)  # for its headers
        incoming = MessageReader(receive)
        timed = send_with_timeout(
            send, partial(_cut_off, receive), lambda: False, flow_control.SEND_TIMEOUT
        )
        with speaking(language_of(request)):
            try:
                try:
                    await self._answer(request, incoming, timed)
                except _RefusedError as refused:
                    await refuse(refused.why, timed, refused.headers)
            except OSError:
                return  # the line is gone
            finally:
                incoming.close()

    async def _answer(self, request: Request, incoming: MessageReader, send: Send) -> None:
        offer = _offer(request)
        said = _parsed(await _body(request, incoming))
        offer.on_address(said.get("address"))
        if request.url.path.endswith(_ADDRESS):
            await Response(status_code=204)(request.scope, request.receive, send)
            return
        asked = _read(said)
        scene = offer.scene  # once: a run of the page may put another one in its place
        if asked.key != scene.key:
            raise _RefusedError(shows_another())
        loop, outbox = asyncio.get_running_loop(), Outbox()
        answering = ExplorerAnswer(
            offer,
            scene,
            asked.view,
            asked.question,
            language=language_of(request),
            tell=outbox.put,
        )
        try:
            quick = loop.run_in_executor(self._quick, answering.cached_or_none)
            last = await _unless_gone(quick, incoming)
            if last is None:
                self._compute(_Begun(offer, answering, outbox))
                await send_all(outbox, incoming, send)
            else:
                await send_one(last, send)
        finally:
            answering.is_gone = True

    def _compute(self, begun: _Begun) -> None:
        """Have an answer computed in a thread of its own, which ends by itself.

        Raises:
            _RefusedError: too much is computed already.
        """
        if begun.offer.asked >= _MOST_ASKED or len(self._waiting) >= _MOST_WAITING:
            raise _RefusedError(too_much(429), **{"Retry-After": "1"})
        begun.offer.asked += 1
        self._waiting.append(begun)
        self._start()

    def _start(self) -> None:
        """Start as many of those that wait as there are threads for, in order of arrival."""
        while self._waiting and self._computed < _MOST_COMPUTED:
            begun = self._waiting.popleft()
            self._computed += 1
            compute = partial(self._in_thread, begun, asyncio.get_running_loop())
            try:
                threading.Thread(target=compute, name="explorer", daemon=True).start()
            except RuntimeError:  # the system has no more of them
                begun.outbox.put(too_much(503))
                self._ended(begun)

    def _in_thread(self, begun: _Begun, loop: asyncio.AbstractEventLoop) -> None:
        try:
            begun.answering.compute()
        finally:
            call_from_thread(loop, partial(self._ended, begun))

    def _ended(self, begun: _Begun) -> None:
        begun.offer.asked -= 1
        self._computed -= 1
        self._start()


async def _unless_gone(
    quick: asyncio.Future[Message | None], incoming: MessageReader
) -> Message | None:
    """Return the answer out of what is kept; None where there is none.

    Raises:
        OSError: the visitor has gone before it was begun.
    """
    going = asyncio.ensure_future(incoming.next())
    try:
        await asyncio.wait((quick, going), return_when=asyncio.FIRST_COMPLETED)
        if not quick.done() and quick.cancel():
            raise OSError("the visitor has gone")
        return await quick
    finally:
        going.cancel()


def _offer(request: Request) -> ExplorerOffer:
    """Return whose question a request is.

    Raises:
        _RefusedError: nobody's who may ask now.
    """
    if not is_origin_allowed(request.headers.get("origin"), request.headers.get("host")):
        raise _RefusedError(refusal(403, say("Only this server's own page may ask.")))
    if shutdown().has_begun:
        raise _RefusedError(server_ends())
    offer = explorer_sessions().find(request.query_params.get("token", ""))
    if offer is None:
        raise _RefusedError(session_is_over())
    if not is_same_browser(request.cookies.get(XSRF_COOKIE_NAME), offer.cookie):
        raise _RefusedError(refusal(403, say("This is another browser's page.")))
    due = offer.bucket.take_if_there()
    if due:
        metrics = capacity.metrics()
        if metrics is not None:
            metrics.held_back()
        raise _RefusedError(
            refusal(429, say("The page asks too often. Try again in a moment.")),
            **{"Retry-After": str(math.ceil(due))},
        )
    return offer


async def _body(request: Request, incoming: MessageReader) -> bytes:
    """Read what a request asks, as bytes.

    Raises:
        OSError: the visitor has gone.
        _RefusedError: it is too much, or takes too long.
    """
    loop = asyncio.get_running_loop()
    over = loop.time() + _PATIENCE
    length = request.headers.get("content-length", "")
    size = int(length[:9]) if length.isdecimal() else 0
    body, more = bytearray(), True
    while more and size <= LARGEST:
        message = await incoming.within(max(0.0, over - loop.time()))
        if message is None:
            raise _RefusedError(refusal(408, say("The question did not come in time.")))
        if message["type"] != "http.request":
            raise OSError("the visitor has gone")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        size = max(size, len(body))
    if size > LARGEST:
        raise _RefusedError(
            refusal(413, say("A question has at most {limit:,} bytes.", limit=LARGEST))
        )
    return bytes(body)


def _parsed(body: bytes) -> Mapping[str, Any]:
    """Return what a request says; nothing where that is no JSON object."""
    try:
        said = shallow_json.parse(body)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _read(said: Mapping[str, Any]) -> _Asked:
    """Read what a request asks.

    Raises:
        _RefusedError: it asks nothing.
    """
    match said:
        case {
            "subject": str(key),
            "view": dict(view),
            "question": {"name": str(name), **others},
        } if _is_link(view):
            facts = {str(each): value for each, value in others.items()}
            return _Asked(key, View.of_link(view), Question(name, facts))
    raise _RefusedError(
        refusal(
            400,
            say(
                "This is no question. {example} would be one.",
                example='{"subject": "…", "view": {"layer": "…"}, "question": {"name": "tiles"}}',
            ),
        )
    )


def _is_link(view: Mapping[Any, Any]) -> bool:
    return len(view) <= _MOST_PARAMETERS and all(isinstance(each, str) for each in view.values())


def _cut_off(receive: Receive) -> None:
    abort_connection(receive)
    metrics = capacity.metrics()
    if metrics is not None:
        metrics.cut_off()


def routes() -> list[Route]:
    """Return the routes of the explorer's questions, and of what the address says."""
    questions = ExplorerQuestions()
    return [Route(path, questions, methods=["POST"]) for path in (PATH, PATH + _ADDRESS)]
