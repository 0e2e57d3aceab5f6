"""Which messages reach Streamlit; tests/e2e/test_threats.py has them on a real server."""

import pytest
from starlette.types import Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg

from hookviz.ui.serving.message_filter import MessageFilter
from tests.loops import in_a_loop_of_its_own


def passed(*sent: bytes) -> list[bytes]:
    """Those of the messages that reach the app behind the bounds, on a WebSocket."""
    came: list[bytes] = []
    waiting: list[Message] = [{"type": "websocket.receive", "bytes": data} for data in sent]
    waiting.append({"type": "websocket.disconnect", "code": 1000})

    async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
        while (message := await receive())["type"] == "websocket.receive":
            came.append(message["bytes"])

    async def receive() -> Message:
        return waiting.pop(0)

    async def send(_message: Message) -> None:
        raise AssertionError("nothing is answered")

    bounds = MessageFilter(app)
    in_a_loop_of_its_own(bounds({"type": "websocket", "path": "/"}, receive, send))
    return came


def filled(**fields: bool) -> bytes:
    message = BackMsg()
    for name, value in fields.items():
        setattr(message, name, value)
    return bytes(message.SerializeToString())


def operation(name: str) -> bytes:
    message = BackMsg()
    getattr(message.backend_operation_request, name).SetInParent()
    return bytes(message.SerializeToString())


RERUN = BackMsg()
RERUN.rerun_script.query_string = "model=ShapesNet"


@pytest.mark.parametrize(
    "message",
    [
        filled(clear_cache=True),
        filled(load_git_info=True),
        filled(set_run_on_save=True),
        filled(debug_shutdown_runtime=True),
        operation("install_skills"),
        operation("dismiss_skills_nudge"),
        RERUN.SerializeToString() + filled(clear_cache=True),  # the last of the two is meant
    ],
)
def test_what_is_not_for_visitors_does_not_arrive(message: bytes) -> None:
    rerun = RERUN.SerializeToString()
    assert passed(rerun, message, rerun) == [rerun, rerun]


@pytest.mark.parametrize(
    "message",
    [
        filled(clear_cache=True) + RERUN.SerializeToString(),
        filled(stop_script=True),
        filled(app_heartbeat=True),
        operation("deferred_file"),
        operation("dataframe_chunk"),
        b"\xff" * 100,  # of no sense: Streamlit ends the connection
    ],
)
def test_what_a_page_needs_arrives(message: bytes) -> None:
    assert passed(message) == [message]
