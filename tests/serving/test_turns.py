"""A session's turn, whoever waits for it; tests/ui/serving/test_queue_wait.py has it on a page."""

import io
import json
import logging
import threading
from collections.abc import Iterator

import pytest

from hookviz.errors import HookVizError
from hookviz.serving import capacity, logs, turns
from tests.live.turns import held_up


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    logger = logging.getLogger("hookviz")
    before = logger.handlers[:], logger.level
    stream = io.StringIO()
    logs.set_up("json", stream)
    yield stream
    logger.handlers[:], level = before
    logger.setLevel(level)


def test_a_turn_is_written_down_however_it_ends(log: io.StringIO) -> None:
    with turns.turn("me", "A run", model="resnet18", layer="conv1"):
        pass
    for error in (HookVizError("words"), ZeroDivisionError("words"), KeyboardInterrupt()):
        with pytest.raises(type(error)), turns.turn("me", "A run", "previews"):
            raise error
    events = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [(each["event"], each["outcome"]) for each in events] == [
        ("capture", "done"),
        ("previews", "refused"),
        ("previews", "failed"),
        ("previews", "stopped"),
    ]
    assert (events[0]["session"], events[0]["model"], events[0]["layer"]) == (
        *("me", "resnet18", "conv1"),
    )
    assert len({each["request"] for each in events}) == 4
    assert "words" not in log.getvalue()
    assert capacity.queue().running == 0


def test_who_waits_is_told_the_place_and_leaves_by_raising() -> None:
    def leave(position: int) -> None:
        raise KeyError(position)

    with held_up():
        with pytest.raises(KeyError, match="1"), turns.turn("me", "A run", on_position=leave):
            pass
        assert capacity.queue().waiting == 0


def test_two_owners_of_one_session_have_a_place_each() -> None:
    entered = threading.Event()

    def beside() -> None:
        with turns.turn("me", "Another run"):
            entered.set()

    with turns.turn("me", "A long run", owner=("long", "me")):
        other = threading.Thread(target=beside)
        other.start()
        if capacity.queue().runs > 1:
            assert entered.wait(10)
    other.join(10)
    assert entered.is_set()
