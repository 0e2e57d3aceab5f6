"""Which uploads reach Streamlit; tests/e2e/test_threats.py has them on a real server."""

import asyncio

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from hookviz.machine.memory import MEGABYTE
from hookviz.settings import read_settings, settings
from hookviz.ui import streamlit_internals
from hookviz.ui.serving import upload_limits, visitors
from hookviz.ui.serving.upload_limits import UploadLimits
from tests.loops import in_a_loop_of_its_own


def answered(length: str | None, *, kept: tuple[int, ...] = (), method: str = "PUT") -> int | None:
    """The status with which an upload is refused; None where it reaches the app."""
    reached: list[str] = []
    sent: list[Message] = []

    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        reached.append("app")

    async def receive() -> Message:
        raise AssertionError("nothing of a refused upload is read")

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [] if length is None else [(b"content-length", length.encode())]
    scope = {"type": "http", "method": method, "headers": headers}
    scope["path"] = streamlit_internals.UPLOAD_PATH + "/some-session/some-file"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamlit_internals, "uploaded_file_sizes", lambda _session: list(kept))
        patch.setattr(streamlit_internals, "is_session_active", lambda _session: False)
        in_a_loop_of_its_own(UploadLimits(app)(scope, receive, send))
    assert bool(reached) != bool(sent)
    return sent[0]["status"] if sent else None


def test_an_upload_within_the_bounds_arrives() -> None:
    assert answered("1000") is None
    assert answered("1000", kept=(MEGABYTE,)) is None


def test_who_did_not_give_the_code_uploads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        visitors, "settings", lambda: read_settings({"HOOKVIZ_CLASS_CODE": "chalk and board"})
    )
    assert answered("1000") == 403
    visitors.admit("ann", "some-session")
    assert answered("1000") is None
    visitors.withdraw("ann")
    assert answered("1000") == 403


@pytest.mark.parametrize("length", [None, "", "-1", "many"])
def test_one_that_does_not_say_how_long_it_is_is_refused(length: str | None) -> None:
    assert answered(length) == 411


def test_a_session_has_so_many_files_and_bytes_and_no_more() -> None:
    limits = settings()
    assert answered("1", kept=(1,) * (limits.uploads - 1)) is None
    assert answered("1", kept=(1,) * limits.uploads) == 413
    assert answered(str(limits.uploads_mb * MEGABYTE)) is None
    assert answered(str(limits.uploads_mb * MEGABYTE), kept=(1,)) == 413


def test_the_sessions_of_an_address_and_of_all_have_so_many_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each session is within its own share."""
    kept: dict[str, int] = {}
    monkeypatch.setattr(upload_limits, "_most_of_all", lambda: 100)
    monkeypatch.setattr(streamlit_internals, "uploaded_file_sizes", lambda name: [kept[name]])
    monkeypatch.setattr(streamlit_internals, "is_session_active", lambda _session: False)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        kept[scope["path"].split("/")[-2]] += 20
        await PlainTextResponse("")(scope, receive, send)

    limits, statuses = UploadLimits(app), list[int]()

    async def upload(number: int, address: str) -> None:
        async def send(message: Message) -> None:
            if "status" in message:
                statuses.append(message["status"])

        async def receive() -> Message:
            raise AssertionError("nothing of a refused upload is read")

        session = f"session-{number}"
        kept[session] = 0
        scope: Scope = {"type": "http", "method": "PUT", "client": (address, 1)}
        scope["path"] = f"{streamlit_internals.UPLOAD_PATH}/{session}/file"
        scope["headers"] = [(b"content-length", b"20")]
        await limits(scope, receive, send)

    for number in range(7):
        in_a_loop_of_its_own(upload(number, f"192.0.2.{number // 3}"))
    assert statuses == [200, 200, 413, 200, 200, 413, 200]
    in_a_loop_of_its_own(upload(7, "192.0.2.3"))
    assert statuses[-1] == 413
    kept.update(dict.fromkeys(kept, 0))  # all have left
    in_a_loop_of_its_own(upload(8, "192.0.2.0"))
    assert statuses[-1] == 200


def test_who_announces_much_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_limits, "_most_of_all", lambda: 100)
    monkeypatch.setattr(streamlit_internals, "uploaded_file_sizes", lambda _session: [])
    monkeypatch.setattr(streamlit_internals, "is_session_active", lambda _session: False)
    arrived = list[str]()

    async def uploads() -> None:
        ends = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            arrived.append(scope["path"].split("/")[-2])
            await ends.wait()

        limits = UploadLimits(app)

        async def upload(session: str, address: str, size: int) -> None:
            scope: Scope = {"type": "http", "method": "PUT", "client": (address, 1)}
            scope["path"] = f"{streamlit_internals.UPLOAD_PATH}/{session}/file"
            scope["headers"] = [(b"content-length", str(size).encode())]
            await limits(scope, never, ignored)

        async with asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(upload(f"other-{number}", f"192.0.2.{number}", 45))
            group.create_task(upload("mine", "203.0.113.1", 20))
            group.create_task(upload("mine too", "203.0.113.1", 31))  # one's own are counted
            await asyncio.sleep(0.05)
            ends.set()

    in_a_loop_of_its_own(uploads())
    assert arrived == ["other-0", "other-1", "other-2", "mine"]


async def never() -> Message:
    raise AssertionError("nothing has come")


async def ignored(_message: Message) -> None:
    return None


def test_what_is_no_upload_passes() -> None:
    assert answered(None, method="DELETE") is None


def served(
    headers: dict[str, str], parts: list[bytes], *, peer: str = "203.0.113.1"
) -> tuple[int, dict[str, str]]:
    """The answer to an upload whose parts come one by one, and then nothing more."""
    sent: list[Message] = []
    coming = [{"type": "http.request", "body": part, "more_body": True} for part in parts]

    async def reads_all(request: Request) -> PlainTextResponse:
        return PlainTextResponse(str(len(await request.body())))

    async def receive() -> Message:
        return coming.pop(0) if coming else await asyncio.Event().wait()  # type: ignore[return-value]

    async def send(message: Message) -> None:
        sent.append(message)

    path = streamlit_internals.UPLOAD_PATH + "/{session}/{file}"
    app = Starlette(
        routes=[Route(path, reads_all, methods=["PUT"])], middleware=[Middleware(UploadLimits)]
    )
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope: Scope = {"type": "http", "method": "PUT", "path": path.format(session="a", file="b")}
    scope.update(headers=raw, client=(peer, 1), query_string=b"")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamlit_internals, "uploaded_file_sizes", lambda _session: [])
        in_a_loop_of_its_own(app(scope, receive, send))
    return sent[0]["status"], {name.decode(): v.decode() for name, v in sent[0]["headers"]}


def test_two_lengths_are_one_too_many() -> None:
    status, headers = served({"content-length": "1", "transfer-encoding": "chunked"}, [b"x" * 99])
    assert (status, headers["connection"]) == (400, "close")


def test_what_comes_beyond_the_length_is_refused() -> None:
    status, headers = served({"content-length": "10"}, [b"x" * 5, b"x" * 6])
    assert (status, headers["connection"]) == (413, "close")


def test_an_upload_that_does_not_go_on_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_limits, "_GRACE", 0.05)
    status, headers = served({"content-length": "10"}, [b"x"])
    assert (status, headers["connection"]) == (408, "close")


def test_bytes_on_their_way_are_bounded_for_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_limits, "_most_in_flight", lambda: 100)
    assert served({"content-length": "51"}, [b"x" * 51])[0] == 413
    monkeypatch.setattr(upload_limits, "_GRACE", 0.05)
    assert served({"content-length": "51"}, [b"x" * 50])[0] == 408  # it fits, and does not end
