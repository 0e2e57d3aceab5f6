"""Which uploads reach Streamlit; tests/e2e/test_threats.py has them on a real server."""

import asyncio
from typing import Any

import pytest
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from hookviz.machine.memory import MEGABYTE
from hookviz.settings import read_settings, settings
from hookviz.ui import streamlit_internals
from hookviz.ui.serving import upload_limits, visitors
from hookviz.ui.serving.upload_limits import UploadLimits
from tests.loops import in_a_loop_of_its_own
from tests.ui.serving.asgi import sent_by, talk


@pytest.fixture(autouse=True)
def sizes(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """What is in memory of each session, whose pages are not connected."""
    kept: dict[str, list[int]] = {}
    monkeypatch.setattr(
        streamlit_internals, "uploaded_file_sizes", lambda name: list(kept.get(name, ()))
    )
    monkeypatch.setattr(streamlit_internals, "is_session_active", lambda _session: False)
    return kept


def upload(
    length: int | str | None, session: str = "some-session", peer: str = "203.0.113.1"
) -> dict[str, Any]:
    headers = [] if length is None else [(b"content-length", str(length).encode())]
    path = f"{streamlit_internals.UPLOAD_PATH}/{session}/some-file"
    scope = {"type": "http", "method": "PUT", "client": (peer, 1), "query_string": b""}
    return scope | {"headers": headers, "path": path}


async def reached(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Send nothing: a refused upload has an answer of the limits'."""


def refused(scope: Scope) -> int | None:
    """The status with which an upload is refused, none of which is read; None where it arrives."""
    sent = sent_by(UploadLimits(reached), scope)
    return sent[0]["status"] if sent else None


@pytest.mark.parametrize("length", [None, "", "-1", "many"])
def test_one_that_does_not_say_how_long_it_is_is_refused(length: str | None) -> None:
    assert refused(upload(length)) == 411
    assert refused(upload(length) | {"method": "DELETE"}) is None  # which is no upload


def test_who_did_not_give_the_code_uploads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    door = read_settings({"HOOKVIZ_CLASS_CODE": "chalk and board"})
    monkeypatch.setattr(visitors, "settings", lambda: door)
    assert refused(upload(1000)) == 403
    visitors.admit("ann", "some-session")
    assert refused(upload(1000)) is None
    visitors.withdraw("ann")
    assert refused(upload(1000)) == 403


def test_a_session_has_so_many_files_and_bytes_and_no_more(sizes: dict[str, list[int]]) -> None:
    files, size = settings().uploads, settings().uploads_mb * MEGABYTE
    for kept, length, status in (
        ([], 1000, None),
        ([MEGABYTE], 1000, None),
        ([1] * (files - 1), 1, None),
        ([1] * files, 1, 413),
        ([], size, None),
        ([1], size, 413),
    ):
        sizes["some-session"] = kept
        assert refused(upload(length)) == status


def test_the_sessions_of_an_address_and_of_all_have_so_many_bytes(
    sizes: dict[str, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each session is within its own share."""
    monkeypatch.setattr(upload_limits, "_most_of_all", lambda: 100)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        sizes[scope["path"].split("/")[-2]] = [20]
        await PlainTextResponse("")(scope, receive, send)

    limits = UploadLimits(app)

    def status(number: int, address: str) -> int:
        session = f"session-{number}"
        sizes[session] = []
        return int(sent_by(limits, upload(20, session, address))[0]["status"])

    statuses = [status(number, f"192.0.2.{number // 3}") for number in range(7)]
    assert statuses == [200, 200, 413, 200, 200, 413, 200]
    assert status(7, "192.0.2.3") == 413
    sizes.clear()  # all have left
    assert status(8, "192.0.2.0") == 200


def test_who_announces_much_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_limits, "_most_of_all", lambda: 100)
    arrived = list[str]()

    async def uploads() -> None:
        ends = asyncio.Event()

        async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
            arrived.append(scope["path"].split("/")[-2])
            await ends.wait()

        limits = UploadLimits(app)
        own = "203.0.113.1"
        scopes = [upload(45, f"other-{n}", f"192.0.2.{n}") for n in range(3)]
        scopes += [upload(20, "mine", own), upload(31, "mine too", own)]  # one's own are counted
        async with asyncio.TaskGroup() as group:
            for scope in scopes:
                group.create_task(talk(limits, scope))
            await asyncio.sleep(0.05)
            ends.set()

    in_a_loop_of_its_own(uploads())
    assert arrived == ["other-0", "other-1", "other-2", "mine"]


async def reads_all(scope: Scope, receive: Receive, send: Send) -> None:
    body = await Request(scope, receive).body()
    await PlainTextResponse(str(len(body)))(scope, receive, send)


CHUNKED = (b"transfer-encoding", b"chunked")


@pytest.mark.parametrize(
    ("length", "more", "parts", "status"),
    [
        (1, [CHUNKED], [99], 400),  # two lengths are one too many
        (10, [], [5, 6], 413),
        (10, [], [1], 408),  # and then nothing more
        (51, [], [51], 413),  # more than an address may have on its way
        (50, [], [49], 408),
    ],
)
def test_an_upload_that_is_not_as_it_says_ends_with_its_connection(
    length: int,
    more: list[tuple[bytes, bytes]],
    parts: list[int],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(upload_limits, "_GRACE", 0.05)
    if length > 10:
        monkeypatch.setattr(upload_limits, "_most_in_flight", lambda: 100)
    scope = upload(length)
    scope["headers"] += more
    coming: list[Message] = [
        {"type": "http.request", "body": bytes(size), "more_body": True} for size in parts
    ]
    start, *_ = sent_by(UploadLimits(ExceptionMiddleware(reads_all)), scope, *coming)
    assert start["status"] == status
    assert (b"connection", b"close") in start["headers"]
