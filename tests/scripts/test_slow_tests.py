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
        ({"longest": 61.0}, "quicker than 60 s"),
        ({"longest": 61.0, "slow": True}, "quicker than 60 s"),
        ({"longest": 31.0}, "say why"),
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
    "row",
    [
        {"longest": 29.0, "seconds": 61.0},
        {"longest": 59.0, "slow": True},
        {"longest": 900.0, "sweep": True},
    ],
)
def test_one_that_says_why_is_not(row: dict[str, object]) -> None:
    assert slow_tests.complaints({"tests/test_x.py::test_y": row}) == []


def report(when: str, seconds: float) -> pytest.TestReport:
    return pytest.TestReport(
        *("tests/test_x.py::test_y", ("tests/test_x.py", 1, "test_y"), {}, "passed", None),
        when=when,  # type: ignore[arg-type]
        duration=seconds,
    )


def test_what_a_test_takes_is_counted_alone_and_with_what_it_sets_up() -> None:
    counted = running_order.Durations()
    for when, seconds in (("setup", 5.0), ("call", 2.0), ("teardown", 1.0)):
        counted.pytest_runtest_logreport(report(when, seconds))
    assert counted._rows == {"tests/test_x.py::test_y": {"seconds": 8.0, "alone": 2.0}}


@pytest.mark.parametrize(
    ("test", "unit"),
    [
        ("tests/e2e/test_weights.py::test_a", "probed"),
        ("tests/e2e/test_growing.py::test_b", "probed"),
        ("tests/e2e/test_walk.py::test_c", "tests/e2e/test_walk.py::test_c"),
        ("tests/cli/test_run.py::test_d", "tests/cli/test_run.py"),
    ],
)
def test_what_has_a_server_in_common_is_dealt_out_together(test: str, unit: str) -> None:
    assert running_order.unit_of(test) == unit


def test_durations_are_kept_by_test_whatever_its_parameters() -> None:
    rows = {
        "a.py::t[1]": {"alone": 1.0, "seconds": 9.0, "slow": True},
        "a.py::t[2]": {"alone": 3.0, "seconds": 3.0, "slow": True},
        "a.py::quick": {"alone": 0.1, "seconds": 0.1},
    }
    assert running_order.condensed(rows) == {
        "a.py::t": {"each": 2.0, "longest": 2.8, "seconds": 5.7, "slow": True}
    }
