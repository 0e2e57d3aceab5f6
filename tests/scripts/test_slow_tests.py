"""Tests that take too long are refused."""

import doctest
import json
from pathlib import Path

import pytest

from scripts import slow_tests
from tests import running_order


def test_the_example_holds() -> None:
    assert doctest.testmod(slow_tests).failed == 0


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"seconds": 31.0}, "quicker than 30 s"),
        ({"seconds": 31.0, "slow": True}, "quicker than 30 s"),
        ({"seconds": 11.0}, "say why"),
    ],
)
def test_one_that_takes_too_long_is_named(
    row: dict[str, object], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "durations.json"
    file.write_text(json.dumps({"tests/test_x.py::test_y": row}))
    monkeypatch.setattr(running_order, "KEPT", file)
    with pytest.raises(SystemExit, match=f"test_y .*{says}"):
        slow_tests.main()


@pytest.mark.parametrize(
    "row", [{"seconds": 9.0}, {"seconds": 29.0, "slow": True}, {"seconds": 900.0, "sweep": True}]
)
def test_one_that_says_why_is_not(row: dict[str, object]) -> None:
    assert slow_tests.complaints({"tests/test_x.py::test_y": row}) == []
