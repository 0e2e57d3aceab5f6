"""Which requests for a part of the page become requests for the page."""

import pytest
from starlette.types import Message
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from hookviz.ui.serving.incoming import read_request
from hookviz.ui.serving.interruption import Interruption
from tests.loops import in_a_loop_of_its_own


def _click() -> Message:
    request = BackMsg()
    request.rerun_script.fragment_id = "part"
    request.rerun_script.query_string = "layer=conv1"
    request.rerun_script.widget_states.widgets.add(id="next", trigger_value=True)
    return {"type": "websocket.receive", "bytes": request.SerializeToString()}


def _told(kind: str) -> Message:
    told = ForwardMsg()
    if kind == "new_session":
        told.new_session.name = "page"
    elif kind == "script_finished":
        told.script_finished = ForwardMsg.FINISHED_SUCCESSFULLY
    else:
        told.delta.new_element.markdown.body = "words"
    return {"type": "websocket.send", "bytes": told.SerializeToString()}


def _asked_after(*kinds: str, long: float = 0.0) -> BackMsg:
    """What is asked of Streamlit for a click after the page was told of these."""
    sent: list[Message] = []

    async def receive() -> Message:
        return _click()

    async def send(message: Message) -> None:
        sent.append(message)

    async def run() -> Message:
        runs = Interruption(receive, send, long=long)
        for kind in kinds:
            await runs.send(_told(kind))
        return await runs.receive()

    request = read_request(in_a_loop_of_its_own(run()))
    assert request is not None
    assert sent == [_told(kind) for kind in kinds]  # and all of it reached the page
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
