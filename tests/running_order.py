"""A pytest plugin: which tests run first, which stay together, and which were slowest.

A file is run by one worker, so that what its tests share is made once; files in `SPREAD` share
nothing but what each worker has anyway, and are dealt out test by test, but for those in
`TOGETHER`. What took longest the last
time begins, or a worker would sit idle while the other ends it.

`tests/durations.json` says what took long; `make durations` writes it.
`scripts/slow_tests.py` refuses a test that takes too long.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

KEPT = Path(__file__).with_name("durations.json")
WORTH_KEEPING = 1.0  # seconds; below that the order hardly matters
SPREAD = ("tests/e2e/", "tests/lenses/test_every_lens.py")
"""Where tests are dealt out one by one."""
TOGETHER = {
    f"tests/e2e/test_{name}.py": server
    for server, names in {
        "faults": ("faults",),
        "languages": ("languages",),
        "probed": ("growing", "queue", "sessions", "weights"),
        "processes": ("processes",),
        "threats": ("threats",),
    }.items()
    for name in names
}
"""Files of those that stay whole all the same, by the server that they have to themselves."""


def unit_of(test: str) -> str:
    """What a test is dealt out with: its file, those of its server, or nothing but itself."""
    file = test.partition("::")[0]
    if file in TOGETHER:
        return TOGETHER[file]
    return test if file.startswith(SPREAD) else file


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--keep-durations", action="store_true", help=f"write what tests took into {KEPT.name}"
    )


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(), "durations of tests")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what took longest first; what is dealt out together stays together."""
    known: dict[str, float] = {test: row["seconds"] for test, row in kept().items()}
    takes: dict[str, float] = defaultdict(float)
    for item in items:
        takes[unit_of(item.nodeid)] += known.get(item.nodeid, 0)
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


def kept() -> dict[str, dict[str, Any]]:
    """By test, its seconds and whether a reason stands beside it, as `--keep-durations` wrote."""
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
        for mark in ("slow", "sweep"):
            if mark in report.keywords:
                row[mark] = True

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        """Print the ten slowest tests, and keep what all took where that is asked for."""
        ranked = sorted(self._rows.items(), key=lambda row: -row[1]["seconds"])
        if len(ranked) > 100:  # a whole run, or a package
            terminalreporter.section("slowest ten tests, with what they set up")
            for test, row in ranked[:10]:
                reason = "" if {"slow", "sweep"} & row.keys() else "  no reason given"
                late = reason if row["alone"] > REASON_ABOVE else ""
                terminalreporter.write_line(f"{row['seconds']:6.1f} s  {test}{late}")
        if config.getoption("keep_durations"):
            worth = [row for row in ranked if row[1]["seconds"] >= WORTH_KEEPING]
            rows = {test: row | rounded(row) for test, row in worth}
            KEPT.write_text(json.dumps(rows, indent=0, sort_keys=True) + "\n", "utf-8")


def rounded(row: dict[str, Any]) -> dict[str, float]:
    return {name: round(row[name], 1) for name in ("seconds", "alone")}


REASON_ABOVE = 10.0
"""Seconds alone beyond which a test says why, by the mark ``slow``."""
MOST = 30.0
"""Seconds alone that no test takes without the mark ``sweep``."""
