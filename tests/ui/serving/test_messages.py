import asyncio

import pytest
from starlette.types import Message
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from hookviz.ui.serving.messages import MessageReader, is_trigger, rerun_request
from tests.loops import in_a_loop_of_its_own


def test_giving_up_the_wait_loses_nothing_and_an_error_of_the_line_is_raised() -> None:
    line: asyncio.Queue[Message] = asyncio.Queue()

    async def waits() -> list[Message | None]:
        reader = MessageReader(line.get)
        first = await reader.within(0.01)
        for number in (1, 2):
            line.put_nowait({"type": str(number)})
        return [first, await reader.within(60), await reader.next()]

    async def broken() -> Message:
        raise ConnectionResetError

    assert in_a_loop_of_its_own(waits()) == [None, {"type": "1"}, {"type": "2"}]
    with pytest.raises(ConnectionResetError):
        in_a_loop_of_its_own(MessageReader(broken).next())


def test_a_request_to_run_the_page_is_told_from_other_messages() -> None:
    message = BackMsg()
    message.rerun_script.query_string = "layer=x"
    request = rerun_request({"type": "websocket.receive", "bytes": message.SerializeToString()})
    assert request is not None
    assert request.rerun_script.query_string == "layer=x"
    stop = BackMsg(stop_script=True)
    for other in (stop.SerializeToString(), b"\xff\xff", b"", None):
        assert rerun_request({"type": "websocket.receive", "bytes": other}) is None
    assert rerun_request({"type": "websocket.disconnect"}) is None


def test_a_click_is_told_from_a_choice() -> None:
    asked = '[{"event": "picked"}]'
    for click in (WidgetState(trigger_value=True), WidgetState(json_trigger_value=asked)):
        assert is_trigger(click)
    for other in (
        WidgetState(trigger_value=False),
        WidgetState(json_trigger_value=""),
        WidgetState(bool_value=True),
        None,
    ):
        assert not is_trigger(other)
