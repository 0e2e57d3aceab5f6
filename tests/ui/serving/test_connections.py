"""What a page's connection still lets through once the server ends; the filters have own tests."""

import asyncio
from collections.abc import Iterator

import pytest
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from streamlit.proto.ClientState_pb2 import ClientState
from uvicorn.protocols.utils import ClientDisconnected

from hookviz.serving.shutdown import shutdown
from hookviz.ui.serving.connections import Connections
from hookviz.ui.streamlit_internals import PAGE_SOCKET, BackMsg, ForwardMsg
from tests.loops import in_a_loop_of_its_own

SCOPE: Scope = {"type": "websocket", "path": PAGE_SOCKET, "headers": []}
OPENS: Message = {"type": "websocket.connect"}
ACCEPTS: Message = {"type": "websocket.accept"}
TELLS: Message = {
    "type": "websocket.send",
    "bytes": ForwardMsg(script_finished=ForwardMsg.FINISHED_SUCCESSFULLY).SerializeToString(),
}
CLOSES: Message = {"type": "websocket.close", "code": 1012}
ASKS: Message = {
    "type": "websocket.receive",
    "bytes": BackMsg(rerun_script=ClientState(query_string="layer=conv1")).SerializeToString(),
}


@pytest.fixture
def ending() -> Iterator[None]:
    """The shutdown, which is not under way for those who come after."""
    yield
    shutdown().has_begun = False


def talked(*, until_end: int) -> tuple[list[Message], list[Message]]:
    """What an app gets of a page that asks three times, and the page of it.

    The server is told to end when the app has got `until_end` messages.
    """
    got: list[Message] = []
    sent: list[Message] = []

    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        for answer in (ACCEPTS, TELLS, TELLS, TELLS):
            got.append(await receive())
            if len(got) == until_end:
                shutdown().has_begun = True
            if got[-1]["type"] == "websocket.disconnect":
                break
            await send(answer)
        await send(CLOSES)

    async def talk() -> None:
        coming: asyncio.Queue[Message] = asyncio.Queue()
        for message in (OPENS, ASKS, ASKS, ASKS):
            coming.put_nowait(message)

        async def send(message: Message) -> None:
            sent.append(message)

        await Connections(app)(SCOPE, coming.get, send)

    in_a_loop_of_its_own(talk())
    return got, sent


def test_a_page_is_answered_what_it_asks() -> None:
    got, sent = talked(until_end=0)
    assert got == [OPENS, ASKS, ASKS, ASKS]
    assert sent == [ACCEPTS, TELLS, TELLS, TELLS, CLOSES]


@pytest.mark.usefixtures("ending")
def test_a_server_that_ends_runs_no_page_any_more_and_tells_none_that_its_run_is_over() -> None:
    """Each run that began would hold up the end, and a page takes a run that is over for whole."""
    got, sent = talked(until_end=2)
    assert got == [OPENS, ASKS, {"type": "websocket.disconnect", "code": 1012}]
    assert sent == [ACCEPTS, CLOSES]


def test_what_was_asked_before_the_line_broke_is_heard_and_no_traceback() -> None:
    """Of an OSError Starlette makes the end of receiving too, by an error of another kind."""
    heard: list[bytes] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        page = WebSocket(scope, receive, send)
        await page.accept()
        with pytest.raises(WebSocketDisconnect):
            await page.send_bytes(TELLS["bytes"])
        heard.extend([asked async for asked in page.iter_bytes()])

    async def talk() -> None:
        coming: asyncio.Queue[Message] = asyncio.Queue()
        for message in (OPENS, ASKS, {"type": "websocket.disconnect", "code": 1006}):
            coming.put_nowait(message)

        async def send(message: Message) -> None:
            if message["type"] == "websocket.send":
                raise OSError("the line is broken")

        await Connections(app)(SCOPE, coming.get, send)

    in_a_loop_of_its_own(talk())
    assert heard == [ASKS["bytes"]]


def test_who_leaves_before_they_are_let_in_is_passed_over_by_the_server() -> None:
    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send(ACCEPTS)

    async def opens() -> Message:
        return OPENS

    async def send(_message: Message) -> None:
        raise ClientDisconnected

    with pytest.raises(ClientDisconnected):
        in_a_loop_of_its_own(Connections(app)(SCOPE, opens, send))
