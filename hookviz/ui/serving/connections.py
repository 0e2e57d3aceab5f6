"""Chain the filters that each connection passes: throttle, backpressure, reruns, resumption."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from hookviz.serving import capacity
from hookviz.serving.shutdown import shutdown
from hookviz.ui.serving import backpressure
from hookviz.ui.serving.backpressure import send_with_timeout
from hookviz.ui.serving.cached_messages import CachedMessages
from hookviz.ui.serving.fragment_reruns import LongRuns, SeveralChanges
from hookviz.ui.serving.message_filter import MessageFilter
from hookviz.ui.serving.resumption import LastRequests, Resumption, SessionBrowsers
from hookviz.ui.serving.throttle import Throttle
from hookviz.ui.serving.upload_limits import UploadLimits
from hookviz.ui.streamlit_internals import PAGE_SOCKET, abort_connection, is_session_lost

_SERVER_ENDS: Message = {"type": "websocket.disconnect", "code": 1012}


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
            timed = send_with_timeout(send, cut_off, lambda: False, backpressure.SEND_TIMEOUT)
            await self._app(scope, receive, timed)
            return

        def is_lost() -> bool:
            return bool(page.session) and is_session_lost(page.session)

        throttle = Throttle(receive, *([metrics.held_back] if metrics else []))
        timed = send_with_timeout(send, cut_off, is_lost, backpressure.SEND_TIMEOUT)
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
