"""Which requests for a fragment become requests for the whole page."""

import pytest
from starlette.types import Message
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from hookviz.ui.serving.fragment_reruns import LongRuns, SeveralChanges
from hookviz.ui.serving.messages import rerun_request
from tests.loops import in_a_loop_of_its_own

MENU, SHUT = WidgetState(id="menu", bool_value=True), WidgetState(id="menu")
SHUT.bool_value = False
FIRST, SECOND = (WidgetState(id="scale", string_value=value) for value in ("own", "shared"))
CLICK = WidgetState(id="begin", trigger_value=True)
ASKED = WidgetState(id="code", json_trigger_value='[{"event":"asked"}]')
OLD, NEW = (WidgetState(id="sort", int_value=value) for value in (0, 1))


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


def _event(kind: str) -> Message:
    event = ForwardMsg()
    if kind == "new_session":
        event.new_session.name = "page"
    elif kind == "script_finished":
        event.script_finished = ForwardMsg.FINISHED_SUCCESSFULLY
    else:
        event.delta.new_element.markdown.body = "words"
    return {"type": "websocket.send", "bytes": event.SerializeToString()}


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
