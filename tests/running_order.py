"""A pytest plugin: which tests are run by day, which first, and which were slowest.

- `make test` runs the first parameters of each test that takes less than `QUICK` seconds or is
  marked as a ``promise``.
- `make test-all` runs the rest of what is run by day, by the mark ``rest``: of one test as many
  parameters as take `BY_DAY` seconds together.
- By night is run what is beyond that, what takes more than `LONG` seconds and is not marked as
  ``by_day``, and what is marked as a ``sweep``.

A file is run by one worker, so that what its tests share is made once; files in `SPREAD` share
nothing but what each worker has anyway, and are dealt out test by test, but for those in
`TOGETHER`. What took longest the last time begins, or a worker would sit idle while another ends.

`tests/durations.json` says what a test takes with one set of parameters, and `make durations`
writes it, by this file as a program.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

KEPT = Path(__file__).with_name("durations.json")
MADE = KEPT.parents[1] / "out" / KEPT.name
"""What each test took the last time that it ran here."""
WORTH_KEEPING = 0.2
"""Seconds below which what a test takes hardly matters."""
QUICK = 1.0
"""Seconds that a test may take to be in `make test`."""
LONG = 10.0
"""Seconds beyond which a test is run by night."""
BY_DAY = 8.0
"""Seconds that a test may take by day in all its parameters, of which the first is always run."""
SPREAD = ("tests/e2e/", "tests/lenses/test_every_lens.py")
"""Where tests are dealt out one by one."""
TOGETHER = {
    f"tests/e2e/test_{name}.py": server
    for server, names in {
        "faults": ("faults",),
        "languages": ("languages",),
        "probed": ("growing", "sessions", "weights"),
        "processes": ("processes",),
        "threats": ("threats",),
    }.items()
    for name in names
}
"""Files of those that stay whole all the same, by the server that they have to themselves."""


def function_of(test: str) -> str:
    """Return a test's name without its parameters."""
    return test.partition("[")[0]


def unit_of(test: str) -> str:
    """What a test is dealt out with: its file, those of its server, or nothing but itself."""
    file = test.partition("::")[0]
    if file in TOGETHER:
        return TOGETHER[file]
    return test if file.startswith(SPREAD) else file


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(), "durations of tests")


@pytest.hookimpl(tryfirst=True, specname="pytest_collection_modifyitems")
def pytest_mark_what_is_not_in_make_test(items: list[pytest.Item]) -> None:
    """Mark what is left to `make test-all` and to the night."""
    known, seen = kept(), Counter[str]()
    for item in items:
        if item.get_closest_marker("sweep"):
            continue
        function = function_of(item.nodeid)
        seconds = known.get(function, {}).get("each", 0.0)
        is_promise = item.get_closest_marker("promise") is not None
        is_by_day = is_promise or item.get_closest_marker("by_day") is not None
        if seen[function] * seconds >= BY_DAY or (seconds >= LONG and not is_by_day):
            item.add_marker(pytest.mark.sweep("by day what is quicker"))
        elif seen[function] or (seconds >= QUICK and not is_promise):
            item.add_marker("rest")
        seen[function] += 1


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what took longest first; what is dealt out together stays together."""
    known = kept()
    takes: dict[str, float] = defaultdict(float)
    for item in items:
        takes[unit_of(item.nodeid)] += known.get(function_of(item.nodeid), {}).get("seconds", 0)
    first = {unit: -position for position, unit in enumerate(dict.fromkeys(map(_unit, items)))}
    items.sort(key=lambda item: (takes[_unit(item)], first[_unit(item)]), reverse=True)


def _unit(item: pytest.Item) -> str:
    return unit_of(item.nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "LoadScopeScheduling":
    """Deal tests out by `unit_of`, in the order in which they were collected."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415

    class ByUnit(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

    config.option.loadscopereorder = False
    return ByUnit(config, log)


@cache
def kept() -> dict[str, dict[str, Any]]:
    """By test, what it takes with one set of parameters, as `condensed` says."""
    if not KEPT.exists():
        return {}
    rows: dict[str, dict[str, Any]] = json.loads(KEPT.read_text("utf-8"))
    return rows


class Durations:
    """Adds up what each test takes: alone, and with what it sets up and takes down.

    What is set up is there for those after it too, so it says nothing of the test itself; but it
    counts where the test stands in the order.
    """

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count one of a test's three phases."""
        row = self._rows.setdefault(report.nodeid, {"seconds": 0.0, "alone": 0.0})
        row["seconds"] += report.duration
        if report.when == "call":
            row["alone"] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the ten slowest tests of a whole run or a package, and keep what all took."""
        ranked = sorted(self._rows.items(), key=lambda row: -row[1]["seconds"])
        if len(ranked) > 100:
            terminalreporter.section("slowest ten tests, with what they set up")
            for test, row in ranked[:10]:
                terminalreporter.write_line(f"{row['seconds']:6.1f} s  {test}")
            self._keep()

    def _keep(self) -> None:
        """Write what tests took beside what those of earlier runs took, for `make durations`."""
        rows = json.loads(MADE.read_text("utf-8")) if MADE.exists() else {}
        MADE.parent.mkdir(exist_ok=True)
        MADE.write_text(json.dumps(rows | self._rows, indent=0, sort_keys=True) + "\n", "utf-8")


def condensed(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return, by test without its parameters, what it takes in one of them.

    ``each`` is alone, ``seconds`` with what it sets up; both are rounded to a power of √2, so that
    a second run writes nearly the same.
    """
    together: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for test, row in rows.items():
        together[function_of(test)].append(row)
    found = {}
    for function, own in sorted(together.items()):
        each, seconds = (sum(row[name] for row in own) / len(own) for name in ("alone", "seconds"))
        if seconds >= WORTH_KEEPING:
            found[function] = {"each": _rounded(each), "seconds": _rounded(seconds)}
    return found


def _rounded(seconds: float) -> float:
    return round(2 ** (round(2 * math.log2(max(seconds, 0.1))) / 2), 1)


def _is_there(test: str) -> bool:
    file, _, name = test.partition("::")
    path = KEPT.parents[1] / file
    return path.exists() and f"def {name.rpartition('::')[2]}(" in path.read_text("utf-8")


if __name__ == "__main__":  # what was not run, by night alone, stays as it was
    rows = kept() | condensed(json.loads(MADE.read_text("utf-8")))
    lines = [
        f"{json.dumps(test)}: {json.dumps(rows[test])}" for test in sorted(rows) if _is_there(test)
    ]
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
