"""Drop the messages of Streamlit's protocol that are for developers, who could stop the server.

Streamlit does not say which of them a visitor may send. A stream of frames has bounds of its own.
"""

import logging

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hookviz.settings import MEGABYTE
from hookviz.ui.serving import class_route, live_route
from hookviz.ui.streamlit_internals import BackMsg, DecodeError

_MESSAGES = {"rerun_script", "stop_script", "file_urls_request", "app_heartbeat"}
_OPERATIONS = {"deferred_file", "dataframe_chunk"}  # others install things on the server
_LARGEST = 25 * MEGABYTE  # of a message; Streamlit ends a connection that sends a larger one

_OURS = (live_route.PATH, class_route.PATH)  # no message of Streamlit's comes there

_log = logging.getLogger(__name__)


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
    if len(data) > _LARGEST:
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
