"""Which tests are run when, and what is kept of what they took."""

import pytest

from tests import running_order


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
        "a.py::t[1]": {"alone": 1.0, "seconds": 9.0},
        "a.py::t[2]": {"alone": 3.0, "seconds": 3.0},
        "a.py::quick": {"alone": 0.1, "seconds": 0.1},
    }
    assert running_order.condensed(rows) == {"a.py::t": {"each": 2.0, "seconds": 5.7}}
