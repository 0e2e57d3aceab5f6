"""How fast a connection's messages pass, and who is cut off; tests/e2e/test_faults.py is live."""

import asyncio
import logging
import time

import pytest
from starlette.types import Message, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from hookviz.ui.serving.flow_control import Throttle, TokenBucket, send_with_timeout
from hookviz.ui.serving.messages import rerun_request
from tests.loops import in_a_loop_of_its_own

GONE: Message = {"type": "websocket.disconnect", "code": 1001}
STOP = BackMsg(stop_script=True).SerializeToString()
MESSAGE: Message = {"type": "websocket.send", "bytes": b"x"}


def request(choice: str, *, clicked: str = "", fragment: str = "") -> bytes:
    message = BackMsg()
    states = [WidgetState(id="layer", string_value=choice)]
    if clicked:
        states.append(WidgetState(id=clicked, trigger_value=True))
    message.rerun_script.widget_states.widgets.extend(states)
    message.rerun_script.fragment_id = fragment
    return bytes(message.SerializeToString())


def states(message: BackMsg) -> list[WidgetState]:
    return list(message.rerun_script.widget_states.widgets)


def choice(message: BackMsg) -> str:
    return next(str(state.string_value) for state in states(message) if state.id == "layer")


def as_message(data: bytes) -> Message:
    return {"type": "websocket.receive", "bytes": data}


def passed(*sent: bytes, burst: int, rate: float, last: Message = GONE) -> list[Message]:
    """What passes until `last` does, all of it having come at once."""

    async def run() -> list[Message]:
        line: asyncio.Queue[Message] = asyncio.Queue()
        for message in (*map(as_message, sent), last):
            line.put_nowait(message)
        throttle = Throttle(line.get, burst=burst, rate=rate)
        got = [await throttle.next()]
        while got[-1]["type"] == "websocket.receive" and got[-1] != last:
            got.append(await throttle.next())
        throttle.close()
        return got

    return in_a_loop_of_its_own(run())


def test_a_thousand_at_once_become_few_and_nothing_chosen_or_clicked_is_lost() -> None:
    sent = [request(str(number), clicked=f"button {number % 3}") for number in range(1000)]
    counted: list[bool] = []

    async def run() -> list[BackMsg]:
        line: asyncio.Queue[Message] = asyncio.Queue()
        for data in sent:
            line.put_nowait(as_message(data))
        throttle = Throttle(line.get, lambda: counted.append(True), burst=5, rate=5.0)
        got: list[BackMsg] = []
        while not got or choice(got[-1]) != "999":
            request = rerun_request(await throttle.next())
            assert request is not None
            got.append(request)
        return got

    got = in_a_loop_of_its_own(run())
    assert [message.SerializeToString() for message in got[:5]] == sent[:5]
    assert len(got) < 100
    clicked = {state.id for message in got[5:] for state in states(message) if state.trigger_value}
    assert clicked == {"button 0", "button 1", "button 2"}
    assert len(counted) >= 995 - len(got)


def test_a_burst_passes_as_it_is_and_what_can_not_be_put_together_keeps_its_order() -> None:
    burst = [request(str(number), clicked="next") for number in range(20)]
    assert passed(*burst, burst=20, rate=0.001) == [*map(as_message, burst), GONE]
    sent = [request("a"), STOP, request("b"), request("c", fragment="x"), request("d")]
    got = passed(*sent, burst=1, rate=100.0, last=as_message(b""))
    assert [message["bytes"] for message in got] == [*sent, b""]


def test_who_leaves_is_gone_at_once_whatever_still_waits() -> None:
    got = passed(*[request(str(number)) for number in range(50)], burst=2, rate=0.001)
    assert got[2:] == [GONE]


def test_a_flood_that_can_not_be_put_together_ends_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        got = passed(*[STOP] * 500, burst=2, rate=0.001)
    assert got[2:] == [{"type": "websocket.disconnect", "code": 1008}]
    assert "more than 100 messages waited" in caplog.text


def test_a_token_that_is_not_there_is_not_owed() -> None:
    bucket = TokenBucket(2, 10.0)
    due = [bucket.take_if_there() for _ in range(200)]
    assert due[:2] == [0.0, 0.0]
    assert all(0 < each <= 0.1 for each in due[2:])
    time.sleep(0.15)
    assert bucket.take_if_there() == 0.0


async def at_once(_message: Message) -> None:
    pass


async def never(_message: Message) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("send", "is_lost", "seconds", "said"),
    [
        (at_once, False, 60, ""),
        (never, False, 0.05, "read nothing for 0.05 s"),
        (at_once, True, 0.05, "reads too slowly"),
    ],
)
def test_who_reads_is_left_alone_and_who_does_not_is_cut_off(
    caplog: pytest.LogCaptureFixture, send: Send, is_lost: bool, seconds: float, said: str
) -> None:
    ended: list[str] = []

    async def run() -> None:
        timed = send_with_timeout(send, lambda: ended.append("ended"), lambda: is_lost, seconds)
        try:
            await timed(MESSAGE)
        except OSError:  # which Streamlit takes for a lost line
            ended.append("raised")

    with caplog.at_level(logging.WARNING):
        in_a_loop_of_its_own(run())
    assert ended == (["ended", "raised"] if said else [])
    assert said in caplog.text
