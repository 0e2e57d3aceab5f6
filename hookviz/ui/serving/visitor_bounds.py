"""What a visitor may send to the server, looked at before Streamlit reads it.

Streamlit bounds a file and a message, and neither how many files a session keeps in memory nor
which of its protocol's messages a visitor may send. A stream of frames has bounds of its own.
"""

import logging
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.runtime import get_instance
from streamlit.runtime.scriptrunner import get_script_run_ctx

from hookviz.language.saying import mark, say
from hookviz.settings import MEGABYTE, settings
from hookviz.ui.serving import class_route, live_route

_UPLOAD = re.compile(r"/_stcore/upload_file/([^/]+)/[^/]+/?$")
_MESSAGES = {"rerun_script", "stop_script", "file_urls_request", "app_heartbeat"}
_OPERATIONS = {"deferred_file", "dataframe_chunk"}  # others install things on the server
_LARGEST = 25 * MEGABYTE  # of a message; Streamlit ends a connection that sends a larger one

_FRESH = 60.0  # seconds for which a refusal is shown
_MOST_REFUSALS = 1000

_log = logging.getLogger(__name__)


class VisitorBounds:
    """Refuses uploads beyond a session's share, and messages that are not for visitors."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand before `app`."""
        self._app = app
        self._files: Counter[str] = Counter()  # on their way, by session
        self._bytes: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is within the bounds."""
        if scope["type"] == "websocket":
            # what comes there is no message of Streamlit's
            own = scope["path"] in (live_route.PATH, class_route.PATH)
            await self._app(scope, receive if own else _for_visitors(receive), send)
            return
        upload = _UPLOAD.search(scope["path"]) if scope["type"] == "http" else None
        if upload is None or scope["method"] != "PUT":
            await self._app(scope, receive, send)
            return
        length = dict(scope["headers"]).get(b"content-length", b"")
        if not length.isdigit():
            answer = PlainTextResponse(say("An upload has to say how long it is."), 411)
            await answer(scope, receive, send)
            return
        session, size = upload[1], int(length)
        refusal = self._refusal(session, size)
        if refusal:
            _log.warning("An upload was refused: %s", refusal)
            await PlainTextResponse(refusal, 413)(scope, receive, send)
            _tell(session, refusal)
            return
        _refusals.pop(session, None)
        with self._on_its_way(session, size):
            await self._app(scope, receive, send)

    def _refusal(self, session: str, size: int) -> str:
        """Why a session may not upload so many bytes more; empty where it may."""
        number, total = _kept(session)
        number += self._files[session]
        total += self._bytes[session]
        most, limit = settings().uploads, settings().uploads_mb
        if number >= most:
            return say(
                "This session has uploaded {number} files, and {limit} is the most. {hint}",
                number=number,
                limit=most,
                hint=say(_ANEW),
            )
        if total + size > limit * MEGABYTE:
            return say(
                "With this file the session would have uploaded {total:,.0f} MB, and "
                "{limit:,} MB is the most. {hint}",
                total=(total + size) / MEGABYTE,
                limit=limit,
                hint=say(_ANEW),
            )
        return ""

    @contextmanager
    def _on_its_way(self, session: str, size: int) -> Iterator[None]:
        self._files[session] += 1
        self._bytes[session] += size
        try:
            yield
        finally:
            for counter, share in ((self._files, 1), (self._bytes, size)):
                counter[session] -= share
                if not counter[session]:
                    del counter[session]


def refusal() -> str:
    """Why an upload of this session was refused a moment ago; empty where none was."""
    context = get_script_run_ctx()
    at, text = _refusals.get(context.session_id if context else "", (-_FRESH, ""))
    return text if time.monotonic() - at < _FRESH else ""


def _tell(session: str, text: str) -> None:
    """Have the session's page drawn again with the refusal: the uploader itself shows a red mark.

    Streamlit has no public way to ask for a run from outside of one; this is its own way after a
    change of the script's file.
    """
    info = get_instance()._session_mgr.get_active_session_info(session)
    if info is None:
        return
    _refusals[session] = time.monotonic(), text
    while len(_refusals) > _MOST_REFUSALS:
        _refusals.pop(next(iter(_refusals)))
    info.session.request_rerun(info.session._client_state)


_refusals: dict[str, tuple[float, str]] = {}
_ANEW = mark("Take files out, or load the page anew; that also empties the row of recent images.")


def _kept(session: str) -> tuple[int, int]:
    """How many files of a session Streamlit keeps in memory, and how many bytes."""
    storage = get_instance().uploaded_file_mgr.file_storage  # type: ignore[attr-defined]
    files = list(storage.get(session, {}).values())
    return len(files), sum(len(file.data) for file in files)


def _for_visitors(receive: Receive) -> Receive:
    """The messages of a connection without those that are for developers and their tools."""

    async def next_message() -> Message:
        while True:
            message = await receive()
            data = message.get("bytes")
            if message["type"] != "websocket.receive" or data is None or _is_allowed(data):
                return message

    return next_message


def _is_allowed(data: bytes) -> bool:
    """Whether a message is for visitors, or one of no sense, for which Streamlit hangs up."""
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
