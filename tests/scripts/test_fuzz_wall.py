"""The fuzzer of the wall does its work, and tells what is wrong."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookviz.reader import wall
from scripts import fuzz_wall
from scripts.fuzz_seeds import seeds

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a wall is of Linux")


@pytest.fixture(autouse=True)
def up() -> Iterator[None]:
    wall.put_up()
    yield
    wall.take_down()


def test_it_finds_nothing_in_some_seconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fuzz_wall.hunt(4, 7, tmp_path) == 0
    assert "refused" in capsys.readouterr().out


def test_a_server_that_ended_is_a_finding() -> None:
    number = wall.server_number()
    assert number is not None
    os.kill(number, signal.SIGKILL)
    with pytest.raises(AssertionError, match="ended"):
        fuzz_wall.judge(seeds()["png"], is_picture=True)
