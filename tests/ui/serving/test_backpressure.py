"""When a visitor is cut off; tests/e2e/test_faults.py has one who reads nothing."""

import asyncio
import logging

import pytest
from starlette.types import Message, Send

from hookviz.ui.serving.backpressure import send_with_timeout
from tests.loops import in_a_loop_of_its_own

MESSAGE: Message = {"type": "websocket.send", "bytes": b"x"}


async def at_once(_message: Message) -> None:
    pass


async def never(_message: Message) -> None:
    await asyncio.Event().wait()


def ended_by(send: Send, *, is_lost: bool, seconds: float) -> list[str]:
    """What becomes of the connection of a message that is sent so."""
    seen: list[str] = []

    async def run() -> None:
        try:
            timed = send_with_timeout(send, lambda: seen.append("ended"), lambda: is_lost, seconds)
            await timed(MESSAGE)
        except OSError:  # which Streamlit takes for a lost line
            seen.append("raised")

    in_a_loop_of_its_own(run())
    return seen


def test_who_reads_is_left_alone() -> None:
    assert ended_by(at_once, is_lost=False, seconds=60) == []


@pytest.mark.parametrize(
    ("send", "is_lost", "said"),
    [(never, False, "read nothing for 0.05 s"), (at_once, True, "reads too slowly")],
)
def test_who_does_not_is_cut_off(
    caplog: pytest.LogCaptureFixture, send: Send, is_lost: bool, said: str
) -> None:
    with caplog.at_level(logging.WARNING):
        assert ended_by(send, is_lost=is_lost, seconds=0.05) == ["ended", "raised"]
    assert said in caplog.text
