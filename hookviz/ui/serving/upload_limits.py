"""Refuse uploads beyond a session's share of memory, before Streamlit reads them.

Streamlit bounds a file, and not how many of them a session keeps in memory.
"""

import logging
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from hookviz.language.saying import mark, say
from hookviz.settings import MEGABYTE, settings
from hookviz.ui import streamlit_internals

_UPLOAD = re.compile(streamlit_internals.UPLOAD_PATH + "/([^/]+)/[^/]+/?$")

_FRESH = 60.0  # seconds for which a refusal is shown
_MOST_REFUSALS = 1000

_log = logging.getLogger(__name__)


class UploadLimits:
    """ASGI middleware that refuses uploads beyond a session's share."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap `app`."""
        self._app = app
        self._files: Counter[str] = Counter()  # in flight, by session
        self._bytes: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request that is within the bounds, and answer one that is not."""
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
            _show_refusal(session, refusal)
            return
        _refusals.pop(session, None)
        with self._in_flight(session, size):
            await self._app(scope, receive, send)

    def _refusal(self, session: str, size: int) -> str:
        """Return why a session may not upload `size` bytes more; empty where it may."""
        kept = streamlit_internals.uploaded_file_sizes(session)
        number = len(kept) + self._files[session]
        total = sum(kept) + self._bytes[session]
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
    def _in_flight(self, session: str, size: int) -> Iterator[None]:
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
    """Return why an upload of this session was refused a moment ago; empty where none was."""
    at, text = _refusals.get(streamlit_internals.session_id() or "", (-_FRESH, ""))
    return text if time.monotonic() - at < _FRESH else ""


def _show_refusal(session: str, text: str) -> None:
    """Rerun the session's page with the refusal; the uploader itself shows a red mark alone."""
    if not streamlit_internals.is_session_active(session):
        return
    _refusals[session] = time.monotonic(), text
    while len(_refusals) > _MOST_REFUSALS:
        _refusals.pop(next(iter(_refusals)))
    streamlit_internals.request_rerun(session)


_refusals: dict[str, tuple[float, str]] = {}
_ANEW = mark("Take files out, or load the page anew; that also empties the row of recent images.")
