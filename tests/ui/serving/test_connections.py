"""What of a page's messages reaches Streamlit; tests/e2e/test_threats.py has a real server."""

import asyncio
from collections.abc import Iterator

import pytest
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.WidgetStates_pb2 import WidgetState
from uvicorn.protocols.utils import ClientDisconnected

from hookviz.serving.capacity import shutdown
from hookviz.ui.serving.connections import (
    CachedMessages,
    Connections,
    LongRuns,
    MessageFilter,
    SeveralChanges,
)
from hookviz.ui.serving.messages import rerun_request
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
MENU, SHUT = WidgetState(id="menu", bool_value=True), WidgetState(id="menu")
SHUT.bool_value = False
FIRST, SECOND = (WidgetState(id="scale", string_value=value) for value in ("own", "shared"))
CLICK = WidgetState(id="begin", trigger_value=True)
ASKED = WidgetState(id="code", json_trigger_value='[{"event":"asked"}]')
OLD, NEW = (WidgetState(id="sort", int_value=value) for value in (0, 1))


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


def _request() -> Message:
    request = BackMsg()
    request.rerun_script.query_string = "layer=conv1"
    request.rerun_script.cached_message_hashes.append("grid")
    return {"type": "websocket.receive", "bytes": request.SerializeToString()}


def _event(kind: str) -> Message:
    event = ForwardMsg()
    if kind == "new_session":
        event.new_session.name = "page"
    elif kind == "script_finished":
        event.script_finished = ForwardMsg.FINISHED_SUCCESSFULLY
    else:
        event.delta.new_element.markdown.body = "words"
    return {"type": "websocket.send", "bytes": event.SerializeToString()}


def _kept(*events: str | float) -> list[bool]:
    """Whether each request keeps what it says the page has; a number is seconds that pass."""
    now, sent, kept = 0.0, [], []

    async def receive() -> Message:
        return _request()

    async def send(message: Message) -> None:
        sent.append(message)

    async def run() -> None:
        nonlocal now
        messages = CachedMessages(receive, send, clock=lambda: now)
        for event in events:
            if isinstance(event, float):
                now += event
            elif event == "asked":
                request = rerun_request(await messages.receive())
                assert request is not None
                assert request.rerun_script.query_string == "layer=conv1"
                kept.append(list(request.rerun_script.cached_message_hashes) == ["grid"])
            else:
                await messages.send(_event(event))

    in_a_loop_of_its_own(run())
    assert sent == [
        _event(event) for event in events if event in ("new_session", "script_finished")
    ]
    return kept


@pytest.mark.parametrize(
    "between",
    [
        ("new_session", "script_finished", 1.0),
        ("new_session", 5.0),  # in a long run, whose end the page then passes over
    ],
)
def test_a_page_that_knew_of_the_run_keeps_its_messages(between: tuple[str | float, ...]) -> None:
    assert _kept("asked", *between, "asked") == [True, True]


@pytest.mark.parametrize(
    "between",
    [
        (),
        (60.0,),  # in the queue
        ("new_session",),
        ("new_session", 0.9),
        ("new_session", 5.0, "script_finished", 0.9),
    ],
)
def test_a_page_that_may_not_have_known_gets_all_of_them(between: tuple[str | float, ...]) -> None:
    assert _kept("asked", *between, "asked") == [True, False]


def test_two_requests_may_have_become_one_run_or_two() -> None:
    two = ("asked", 0.1, "asked", "new_session", "script_finished")
    assert _kept(*two, 0.5, "asked") == [True, False, False]
    assert _kept(*two, 1.0, "asked") == [True, False, True]  # they were one
    assert _kept(*two, "new_session", 2.0, "asked") == [True, False, True]
    assert _kept(*two, "new_session", 2.0, "asked", 2.0, "asked") == [True, False, True, False]


def _parts(*requests: list[WidgetState], part: str = "menu") -> list[str]:
    """The part of the page that each request runs, told one after the other."""
    waiting: list[Message] = []
    for states in requests:
        request = BackMsg()
        request.rerun_script.fragment_id = part
        request.rerun_script.query_string = "layer=conv1"
        request.rerun_script.widget_states.widgets.extend(states)
        waiting.append({"type": "websocket.receive", "bytes": request.SerializeToString()})

    async def receive() -> Message:
        return waiting.pop(0)

    async def run() -> list[str]:
        changes = SeveralChanges(receive)
        parts = []
        for states in requests:
            request = rerun_request(await changes.receive())
            assert request is not None
            assert list(request.rerun_script.widget_states.widgets) == states
            assert request.rerun_script.query_string == "layer=conv1"
            parts.append(request.rerun_script.fragment_id)
        return parts

    return in_a_loop_of_its_own(run())


@pytest.mark.parametrize(
    "requests",
    [
        ([MENU, FIRST], [SHUT, SECOND]),  # another choice closes the menu
        ([MENU], [SHUT, ASKED]),
        ([FIRST], [SECOND, MENU]),  # it is new since it was opened
        ([FIRST], [SECOND, CLICK]),
    ],
)
def test_what_changes_in_several_parts_is_drawn_in_all(
    requests: tuple[list[WidgetState], ...],
) -> None:
    assert _parts(*requests) == ["menu", ""]


@pytest.mark.parametrize(
    "requests",
    [
        ([MENU, FIRST], [SHUT, FIRST]),
        ([MENU, FIRST], [SHUT]),  # gone with what was drawn there
        ([FIRST], [SECOND, OLD]),  # new on the page, as it was drawn
        ([FIRST, OLD, CLICK], [FIRST, NEW]),
        ([FIRST], [FIRST]),
        ([CLICK], [CLICK]),
    ],
)
def test_one_change_is_drawn_where_it_is(requests: tuple[list[WidgetState], ...]) -> None:
    assert _parts(*requests) == ["menu", "menu"]


def test_what_is_no_request_passes() -> None:
    message: Message = {"type": "websocket.receive", "bytes": b"\xff\xff"}

    async def receive() -> Message:
        return message

    async def run() -> Message:
        return await SeveralChanges(receive).receive()

    assert in_a_loop_of_its_own(run()) is message


def _click() -> Message:
    request = BackMsg()
    request.rerun_script.fragment_id = "part"
    request.rerun_script.query_string = "layer=conv1"
    request.rerun_script.widget_states.widgets.add(id="next", trigger_value=True)
    return {"type": "websocket.receive", "bytes": request.SerializeToString()}


def _asked_after(*kinds: str, long: float = 0.0) -> BackMsg:
    """What is asked of Streamlit for a click after the page was told of these."""
    sent: list[Message] = []

    async def receive() -> Message:
        return _click()

    async def send(message: Message) -> None:
        sent.append(message)

    async def run() -> Message:
        runs = LongRuns(receive, send, long=long)
        for kind in kinds:
            await runs.send(_event(kind))
        return await runs.receive()

    request = rerun_request(in_a_loop_of_its_own(run()))
    assert request is not None
    assert sent == [_event(kind) for kind in kinds]  # and all of it reached the page
    return request


@pytest.mark.parametrize(
    "kinds", [(), ("new_session", "script_finished"), ("new_session", "delta", "script_finished")]
)
def test_a_click_after_a_run_asks_for_its_part(kinds: tuple[str, ...]) -> None:
    assert _asked_after(*kinds).rerun_script.fragment_id == "part"


def test_a_click_in_a_long_run_asks_for_the_page_and_is_the_same_click() -> None:
    script = _asked_after("new_session", "delta").rerun_script
    assert script.fragment_id == ""
    assert script.query_string == "layer=conv1"
    assert script.widget_states.widgets[0].trigger_value


def test_a_click_in_a_short_run_waits_for_its_end() -> None:
    assert _asked_after("new_session", long=60.0).rerun_script.fragment_id == "part"


def test_the_end_of_the_run_before_ends_no_later_one() -> None:
    kinds = ("new_session", "script_finished", "new_session")
    assert _asked_after(*kinds).rerun_script.fragment_id == ""
