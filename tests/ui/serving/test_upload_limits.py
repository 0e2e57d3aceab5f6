"""Which uploads reach Streamlit; tests/e2e/test_threats.py has them on a real server."""

import pytest
from starlette.types import Message, Receive, Scope, Send

from hookviz.settings import MEGABYTE, settings
from hookviz.ui import streamlit_internals
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


@pytest.mark.parametrize("length", [None, "", "-1", "many"])
def test_one_that_does_not_say_how_long_it_is_is_refused(length: str | None) -> None:
    assert answered(length) == 411


def test_a_session_has_so_many_files_and_bytes_and_no_more() -> None:
    limits = settings()
    assert answered("1", kept=(1,) * (limits.uploads - 1)) is None
    assert answered("1", kept=(1,) * limits.uploads) == 413
    assert answered(str(limits.uploads_mb * MEGABYTE)) is None
    assert answered(str(limits.uploads_mb * MEGABYTE), kept=(1,)) == 413


def test_what_is_no_upload_passes() -> None:
    assert answered(None, method="DELETE") is None
