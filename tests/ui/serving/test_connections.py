"""What of a page's messages reaches Streamlit; tests/e2e/test_threats.py has a real server."""

import asyncio
from collections.abc import Iterator

import pytest
import requests
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from uvicorn.protocols.utils import ClientDisconnected
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from hookviz.serving.capacity import shutdown
from hookviz.ui.serving.connections import (
    CachedMessages,
    Connections,
    LongRuns,
    MessageFilter,
    SessionBrowsers,
    SeveralChanges,
)
from hookviz.ui.serving.messages import rerun_request
from hookviz.ui.streamlit_internals import PAGE_SOCKET, XSRF_COOKIE_NAME, BackMsg, ForwardMsg
from scripts.class_client import CLASS_APP
from scripts.servers import ROOT, serve
from scripts.visitor import PATIENCE
from tests.loops import in_a_loop_of_its_own
from tests.ui.serving.asgi import sent_by

SCOPE: Scope = {"type": "websocket", "path": PAGE_SOCKET, "headers": []}
OPENS: Message = {"type": "websocket.connect"}
ACCEPTS: Message = {"type": "websocket.accept"}
CLOSES: Message = {"type": "websocket.close", "code": 1012}


def as_message(data: bytes) -> Message:
    return {"type": "websocket.receive", "bytes": data}


def asks(*states: WidgetState, part: str = "", known: tuple[str, ...] = ()) -> Message:
    """A page's request to run it, or a part of it."""
    state = ClientState(
        query_string="layer=conv1",
        fragment_id=part,
        widget_states=WidgetStates(widgets=states),
        cached_message_hashes=known,
    )
    return as_message(BackMsg(rerun_script=state).SerializeToString())


def script_of(message: Message) -> ClientState:
    request = rerun_request(message)
    assert request is not None
    assert request.rerun_script.query_string == "layer=conv1"
    return request.rerun_script


def tells(kind: str) -> Message:
    """What a page is told of a run."""
    event = ForwardMsg()
    if kind == "new_session":
        event.new_session.name = "page"
    elif kind == "script_finished":
        event.script_finished = ForwardMsg.FINISHED_SUCCESSFULLY
    else:
        event.delta.new_element.markdown.body = "words"
    return {"type": "websocket.send", "bytes": event.SerializeToString()}


ASKS, TELLS = asks(), tells("script_finished")


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

    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        for answer in (ACCEPTS, TELLS, TELLS, TELLS):
            got.append(await receive())
            if len(got) == until_end:
                shutdown().has_begun = True
            if got[-1]["type"] == "websocket.disconnect":
                break
            await send(answer)
        await send(CLOSES)

    return got, sent_by(Connections(app), SCOPE, OPENS, ASKS, ASKS, ASKS)


@pytest.mark.usefixtures("ending")
def test_a_page_is_answered_until_the_server_ends_and_is_told_of_no_end_of_its_run() -> None:
    """Each run that began would hold up the end, and a page takes a run that is over for whole."""
    got, sent = talked(until_end=0)
    assert got == [OPENS, ASKS, ASKS, ASKS]
    assert sent == [ACCEPTS, TELLS, TELLS, TELLS, CLOSES]
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

    async def broken(message: Message) -> None:
        if message["type"] == "websocket.send":
            raise OSError("the line is broken")

    gone: Message = {"type": "websocket.disconnect", "code": 1006}
    sent_by(Connections(app), SCOPE, OPENS, ASKS, gone, send=broken)
    assert heard == [ASKS["bytes"]]


def test_who_leaves_before_they_are_let_in_is_passed_over_by_the_server() -> None:
    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send(ACCEPTS)

    async def gone(_message: Message) -> None:
        raise ClientDisconnected

    with pytest.raises(ClientDisconnected):
        sent_by(Connections(app), SCOPE, OPENS, send=gone)


def filled(**fields: bool) -> bytes:
    return bytes(BackMsg(**fields).SerializeToString())  # type: ignore[arg-type]


def operation(name: str) -> bytes:
    message = BackMsg()
    getattr(message.backend_operation_request, name).SetInParent()
    return bytes(message.SerializeToString())


RERUN: bytes = ASKS["bytes"]


@pytest.mark.parametrize(
    ("message", "arrives"),
    [
        (filled(clear_cache=True), False),
        (filled(load_git_info=True), False),
        (filled(set_run_on_save=True), False),
        (filled(debug_shutdown_runtime=True), False),
        (operation("install_skills"), False),
        (operation("dismiss_skills_nudge"), False),
        (RERUN + filled(clear_cache=True), False),  # the last of the two is meant
        (filled(clear_cache=True) + RERUN, True),
        (filled(stop_script=True), True),
        (filled(app_heartbeat=True), True),
        (operation("deferred_file"), True),
        (operation("dataframe_chunk"), True),
        (b"\xff" * 100, True),  # of no sense: Streamlit ends the connection
    ],
)
def test_what_a_page_needs_arrives_and_what_is_not_for_visitors_does_not(
    message: bytes, arrives: bool
) -> None:
    came: list[bytes] = []

    async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
        while (one := await receive())["type"] == "websocket.receive":
            came.append(one["bytes"])

    coming = [*map(as_message, (RERUN, message, RERUN)), {"type": "websocket.disconnect"}]
    assert sent_by(MessageFilter(app), {"type": "websocket", "path": "/"}, *coming) == []
    assert came == [RERUN, *([message] if arrives else []), RERUN]


def _kept(*events: str | float) -> list[bool]:
    """Whether each request keeps what it says the page has; a number is seconds that pass."""
    now, sent, kept = 0.0, list[Message](), []

    async def receive() -> Message:
        return asks(known=("grid",))

    async def send(message: Message) -> None:
        sent.append(message)

    async def run() -> None:
        nonlocal now
        messages = CachedMessages(receive, send, clock=lambda: now)
        for event in events:
            if isinstance(event, float):
                now += event
            elif event == "asked":
                script = script_of(await messages.receive())
                kept.append(list(script.cached_message_hashes) == ["grid"])
            else:
                await messages.send(tells(event))

    in_a_loop_of_its_own(run())
    assert sent == [tells(event) for event in events if event in ("new_session", "script_finished")]
    return kept


BOTH = ("new_session", "script_finished")
TWO = ("asked", 0.1, "asked", *BOTH)  # which may have become one run or two


@pytest.mark.parametrize(
    ("events", "kept"),
    [
        (("asked", *BOTH, 1.0, "asked"), [True, True]),
        (("asked", "new_session", 5.0, "asked"), [True, True]),  # whose end is passed over then
        (("asked", "asked"), [True, False]),
        (("asked", 60.0, "asked"), [True, False]),  # in the queue
        (("asked", "new_session", "asked"), [True, False]),
        (("asked", "new_session", 0.9, "asked"), [True, False]),
        (("asked", "new_session", 5.0, "script_finished", 0.9, "asked"), [True, False]),
        ((*TWO, 0.5, "asked"), [True, False, False]),
        ((*TWO, 1.0, "asked"), [True, False, True]),  # they were one
        ((*TWO, "new_session", 2.0, "asked", 2.0, "asked"), [True, False, True, False]),
    ],
)
def test_a_page_keeps_its_messages_where_it_surely_knew_of_the_run(
    events: tuple[str | float, ...], kept: list[bool]
) -> None:
    assert _kept(*events) == kept


MENU, SHUT = (WidgetState(id="menu", bool_value=value) for value in (True, False))
FIRST, SECOND = (WidgetState(id="scale", string_value=value) for value in ("own", "shared"))
CLICK = WidgetState(id="begin", trigger_value=True)
ASKED = WidgetState(id="code", json_trigger_value='[{"event":"asked"}]')
OLD, NEW = (WidgetState(id="sort", int_value=value) for value in (0, 1))


@pytest.mark.parametrize(
    ("first", "second", "part"),
    [
        ([MENU, FIRST], [SHUT, SECOND], ""),  # another choice closes the menu
        ([MENU], [SHUT, ASKED], ""),
        ([FIRST], [SECOND, MENU], ""),  # it is new since it was opened
        ([FIRST], [SECOND, CLICK], ""),
        ([MENU, FIRST], [SHUT, FIRST], "menu"),
        ([MENU, FIRST], [SHUT], "menu"),  # gone with what was drawn there
        ([FIRST], [SECOND, OLD], "menu"),  # new on the page, as it was drawn
        ([FIRST, OLD, CLICK], [FIRST, NEW], "menu"),
        ([FIRST], [FIRST], "menu"),
        ([CLICK], [CLICK], "menu"),
    ],
)
def test_one_change_is_drawn_in_its_part_and_several_in_the_whole_page(
    first: list[WidgetState], second: list[WidgetState], part: str
) -> None:
    nonsense = as_message(b"\xff\xff")
    waiting = [nonsense, asks(*first, part="menu"), asks(*second, part="menu")]

    async def receive() -> Message:
        return waiting.pop(0)

    async def run() -> list[Message]:
        changes = SeveralChanges(receive)
        return [await changes.receive() for _ in range(3)]

    passed, *requests = in_a_loop_of_its_own(run())
    assert passed is nonsense
    scripts = [script_of(each) for each in requests]
    assert [list(each.widget_states.widgets) for each in scripts] == [first, second]
    assert [each.fragment_id for each in scripts] == ["menu", part]


@pytest.mark.parametrize(
    ("kinds", "long", "part"),
    [
        ((), 0.0, "part"),
        (BOTH, 0.0, "part"),
        (("new_session", "delta", "script_finished"), 0.0, "part"),
        (("new_session",), 60.0, "part"),  # whose end is waited for
        (("new_session", "delta"), 0.0, ""),
        ((*BOTH, "new_session"), 0.0, ""),  # the end of the run before ends no later one
    ],
)
def test_a_click_in_a_long_run_asks_for_the_page_and_any_other_for_its_part(
    kinds: tuple[str, ...], long: float, part: str
) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return asks(CLICK, part="part")

    async def send(message: Message) -> None:
        sent.append(message)

    async def run() -> Message:
        runs = LongRuns(receive, send, long=long)
        for kind in kinds:
            await runs.send(tells(kind))
        return await runs.receive()

    script = script_of(in_a_loop_of_its_own(run()))
    assert sent == [tells(kind) for kind in kinds]  # all of it reached the page
    assert script.fragment_id == part
    assert script.widget_states.widgets[0].trigger_value


PROTOCOL = "sec-websocket-protocol"
FIRST_RUN = BackMsg(rerun_script=ClientState(query_string="")).SerializeToString()


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
            await socket.send(FIRST_RUN)
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
