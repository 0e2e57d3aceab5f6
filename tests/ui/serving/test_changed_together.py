"""Which requests become one for the whole page."""

import pytest
from starlette.types import Message
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from hookviz.ui.serving.changed_together import ChangedTogether
from hookviz.ui.serving.incoming import read_request
from tests.loops import in_a_loop_of_its_own

MENU, SHUT = WidgetState(id="menu", bool_value=True), WidgetState(id="menu")
SHUT.bool_value = False
FIRST, SECOND = (WidgetState(id="scale", string_value=each) for each in ("own", "shared"))
CLICK = WidgetState(id="begin", trigger_value=True)
ASKED = WidgetState(id="code", json_trigger_value='[{"event":"asked"}]')
OLD, NEW = (WidgetState(id="sort", int_value=each) for each in (0, 1))


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
        together = ChangedTogether(receive)
        parts = []
        for states in requests:
            request = read_request(await together.receive())
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
        return await ChangedTogether(receive).receive()

    assert in_a_loop_of_its_own(run()) is message
