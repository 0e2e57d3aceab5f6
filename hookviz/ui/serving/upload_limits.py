"""Refuse uploads beyond a session's share of memory, and end those that are too slow or too many.

Streamlit bounds a file, and not how many of them a session keeps in memory. What is on its way is
in memory too, and counts by the bytes that have come: who announces much holds nobody up.
"""

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hookviz.language.saying import mark, say
from hookviz.machine.memory import MEGABYTE, own_memory
from hookviz.settings import settings
from hookviz.ui import streamlit_internals
from hookviz.ui.serving.visitors import client_address, is_admitted

_UPLOAD = re.compile(streamlit_internals.UPLOAD_PATH + "/([^/]+)/[^/]+/?$")

_GRACE = 60.0  # seconds that an upload may take in any case
_LEAST_RATE = 100_000.0  # bytes a second that have to come after them
_CLOSE = {"Connection": "close"}  # what else was sent is not read

_FRESH = 60.0  # seconds for which a refusal is shown
_MOST_REFUSALS = 1000

_log = logging.getLogger(__name__)


class UploadLimits:
    """ASGI middleware that refuses uploads beyond a session's share."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap `app`."""
        self._app = app
        self._files: Counter[str] = Counter()  # in flight, by session
        self._bytes: Counter[str] = Counter()  # announced, by session
        self._by_address: Counter[str] = Counter()  # bytes that have come
        self._address_of: dict[str, str] = {}  # of the sessions that have uploaded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request that is within the bounds, and answer one that is not."""
        upload = _UPLOAD.search(scope["path"]) if scope["type"] == "http" else None
        if upload is None or scope["method"] != "PUT":
            await self._app(scope, receive, send)
            return
        if not is_admitted(upload[1]):
            answer = PlainTextResponse(say("Come in before you upload a file."), 403, _CLOSE)
            await answer(scope, receive, send)
            return
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"")
        if b"transfer-encoding" in headers and length:  # of which one may be a lie
            answer = PlainTextResponse(say("An upload has one length."), 400, _CLOSE)
            await answer(scope, receive, send)
            return
        if not length.isdigit():
            answer = PlainTextResponse(say("An upload has to say how long it is."), 411, _CLOSE)
            await answer(scope, receive, send)
            return
        session, size = upload[1], int(length)
        self._address_of[session] = client_address(scope)
        refusal = self._refusal(session, size) or self._refusal_of_all(session, size)
        if refusal:
            _log.warning("An upload was refused: %s", refusal)
            await PlainTextResponse(refusal, 413, _CLOSE)(scope, receive, send)
            _show_refusal(session, refusal)
            return
        _refusals.pop(session, None)
        with self._in_flight(session, size), self._counted(scope, receive, size) as counted:
            await self._app(scope, counted, send)

    @contextmanager
    def _counted(self, scope: Scope, receive: Receive, size: int) -> Iterator[Receive]:
        """Count what comes of an upload while it is on its way, and refuse it where that is wrong.

        Streamlit's application answers the `HTTPException`, which passes through its reader.
        """
        address = client_address(scope)
        begun, come = time.monotonic(), 0

        async def counted() -> Message:
            nonlocal come
            deadline = begun + _GRACE + come / _LEAST_RATE
            try:
                message = await asyncio.wait_for(receive(), max(0.0, deadline - time.monotonic()))
            except TimeoutError as error:
                raise HTTPException(408, say("The upload was too slow."), _CLOSE) from error
            part = len(message.get("body", b""))
            come += part
            self._by_address[address] += part
            most = _most_in_flight()
            if come > size:
                raise HTTPException(413, say("The upload is longer than it said."), _CLOSE)
            if self._by_address[address] > most // 2 or self._by_address.total() > most:
                _log.warning("An upload was refused: many are on their way")
                text = say("Many files are on their way here. Try again in a minute.")
                raise HTTPException(413, text, _CLOSE)
            return message

        try:
            yield counted
        finally:
            self._by_address[address] -= come
            if not self._by_address[address]:
                del self._by_address[address]

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

    def _refusal_of_all(self, session: str, size: int) -> str:
        """Return why the server or the session's address has no room; empty where both have."""
        address, most = self._address_of[session], _most_of_all()
        every = size + self._by_address.total()  # what others announce holds nobody up
        own = size
        for each, other in [*self._address_of.items()]:
            there = sum(streamlit_internals.uploaded_file_sizes(each))
            every += there
            own += there + self._bytes[each] if other == address else 0
            if not there and not self._files[each] and each != session:  # it has left
                del self._address_of[each]
        if own <= most // 2 and every <= most:
            return ""
        return say(
            "{total:,.0f} MB of uploaded files lie here, and there is no room for this one. Try "
            "again when others have left.",
            total=(every - size) / MEGABYTE,
        )

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


@cache
def _most_in_flight() -> int:
    """Return the bytes that may be on their way: a quarter of the memory, or two of the largest."""
    chosen = settings()
    there = own_memory(chosen.memory_mb, chosen.processes).limit
    largest = max(chosen.upload_mb, chosen.checkpoint_mb) + 1  # what is around the file
    return max(there // 4, 2 * largest * MEGABYTE)


@cache
def _most_of_all() -> int:
    """Return the bytes of all files that may be kept: half the memory, or two sessions' share."""
    chosen = settings()
    there = own_memory(chosen.memory_mb, chosen.processes).limit
    return max(there // 2, 2 * chosen.uploads_mb * MEGABYTE)


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
