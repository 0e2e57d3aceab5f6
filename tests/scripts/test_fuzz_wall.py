"""The fuzzer of the wall does its work, and tells what is wrong."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookviz.reader import wall
from scripts import fuzz_wall

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
