"""Which requests are taken to come from a page that keeps no messages."""

import pytest
from starlette.types import Message
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from hookviz.ui.serving.cached_messages import CachedMessages
from hookviz.ui.serving.messages import rerun_request
from tests.loops import in_a_loop_of_its_own


def _request() -> Message:
    request = BackMsg()
    request.rerun_script.query_string = "layer=conv1"
    request.rerun_script.cached_message_hashes.append("grid")
    return {"type": "websocket.receive", "bytes": request.SerializeToString()}


def _event(kind: str) -> Message:
    event = ForwardMsg()
    if kind == "began":
        event.new_session.name = "page"
    else:
        event.script_finished = ForwardMsg.FINISHED_SUCCESSFULLY
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
    assert sent == [_event(event) for event in events if event in ("began", "ended")]
    return kept


@pytest.mark.parametrize(
    "between",
    [
        ("began", "ended", 1.0),
        ("began", 5.0),  # in a long run, whose end the page then passes over
    ],
)
def test_a_page_that_knew_of_the_run_keeps_its_messages(between: tuple[str | float, ...]) -> None:
    assert _kept("asked", *between, "asked") == [True, True]


@pytest.mark.parametrize(
    "between",
    [
        (),
        (60.0,),  # in the queue
        ("began",),
        ("began", 0.9),
        ("began", 5.0, "ended", 0.9),
    ],
)
def test_a_page_that_may_not_have_known_gets_all_of_them(between: tuple[str | float, ...]) -> None:
    assert _kept("asked", *between, "asked") == [True, False]


def test_two_requests_may_have_become_one_run_or_two() -> None:
    two = ("asked", 0.1, "asked", "began", "ended")
    assert _kept(*two, 0.5, "asked") == [True, False, False]
    assert _kept(*two, 1.0, "asked") == [True, False, True]  # they were one
    assert _kept(*two, "began", 2.0, "asked") == [True, False, True]
    assert _kept(*two, "began", 2.0, "asked", 2.0, "asked") == [True, False, True, False]
