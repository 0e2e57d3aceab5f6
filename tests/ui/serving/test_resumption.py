"""Whose session a page gets; tests/e2e/test_faults.py has what comes back of a page."""

import asyncio

import pytest
import requests
from starlette.types import Scope
from streamlit.proto.ClientState_pb2 import ClientState
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from hookviz.ui.serving.resumption import SessionBrowsers
from hookviz.ui.streamlit_internals import PAGE_SOCKET, XSRF_COOKIE_NAME, BackMsg, ForwardMsg
from scripts.class_client import CLASS_APP
from scripts.servers import ROOT, serve
from scripts.visitor import PATIENCE
from tests.loops import in_a_loop_of_its_own

PROTOCOL = "sec-websocket-protocol"
ASKS = BackMsg(rerun_script=ClientState(query_string="")).SerializeToString()


def scope(*lines: str, cookie: str = "") -> Scope:
    headers = [(PROTOCOL.encode(), line.encode()) for line in lines]
    if cookie:
        headers.append((b"cookie", f"{XSRF_COOKIE_NAME}={cookie}".encode()))
    return {"type": "websocket", "path": PAGE_SOCKET, "headers": headers, "subprotocols": []}


@pytest.mark.parametrize(
    "lines",
    [
        ("streamlit, token, ann",),
        ("streamlit,,ann",),  # parsers that drop what is empty see two
        ("streamlit, token, ann", "streamlit, token, eve"),  # Streamlit reads the first alone
    ],
)
def test_the_session_of_another_browser_is_left_out_however_it_is_named(
    lines: tuple[str, ...],
) -> None:
    browsers = SessionBrowsers()
    browsers.put("ann", scope(cookie="00aa"))
    browsers.put("eve", scope(cookie="00ee"))
    for cookie in ("00ee", ""):
        checked = browsers.checked(scope(*lines, cookie=cookie))
        named = [value for name, value in checked["headers"] if name == PROTOCOL.encode()]
        assert len(named) == 1
        assert b"ann" not in named[0]
        assert b"eve" not in named[0]
    checked = SessionBrowsers().checked(scope("streamlit, token, made-up", cookie="00aa"))
    assert checked["subprotocols"] == ["streamlit", "token"]  # one that never began here


def test_a_page_comes_back_to_its_session_with_its_own_cookie_alone() -> None:
    async def session_of(address: str, cookie: str, before: str = "") -> str:
        async with connect(
            address.replace("http", "ws", 1) + PAGE_SOCKET,
            additional_headers={"Cookie": f"{XSRF_COOKIE_NAME}={cookie}"},
            subprotocols=[Subprotocol(each) for each in ("streamlit", cookie, before) if each],
            origin=address,  # type: ignore[arg-type]
            max_size=None,
        ) as socket:
            await socket.send(ASKS)
            while True:
                data = await asyncio.wait_for(socket.recv(), PATIENCE)
                assert isinstance(data, bytes)
                sent = ForwardMsg.FromString(data)
                if sent.WhichOneof("type") == "new_session":
                    return str(sent.new_session.initialize.session_id)

    def cookie_of(address: str, own: str | None = None) -> str:
        """The browser's cookie after it has asked something, which may look another each time."""
        cookies = {XSRF_COOKIE_NAME: own} if own else None
        answer = requests.get(f"{address}/_stcore/health", timeout=PATIENCE, cookies=cookies)
        return str(answer.cookies.get(XSRF_COOKIE_NAME) or own)

    with serve({"PYTHONPATH": str(ROOT)}, CLASS_APP) as address:
        own, strange = cookie_of(address), cookie_of(address)
        ann = in_a_loop_of_its_own(session_of(address, own))
        assert in_a_loop_of_its_own(session_of(address, strange, ann)) != ann
        assert in_a_loop_of_its_own(session_of(address, cookie_of(address, own), ann)) == ann
