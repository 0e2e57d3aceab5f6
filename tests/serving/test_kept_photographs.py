"""Who gets a photograph back, how many bytes are kept, and for how long."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from hookviz.capturing.cache import Budget
from hookviz.serving.kept_photographs import SECONDS, KeptPhotographs, OwnFile


@dataclass
class Time:
    """A clock that a test moves, and what is to be called at a later time."""

    now: float = 1000.0
    due: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        self.due.append((self.now + seconds, act))

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        due = [act for at, act in self.due if at <= self.now]
        self.due = [(at, act) for at, act in self.due if at > self.now]
        for act in due:
            act()


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def budget() -> Budget:
    return Budget(1000)


@pytest.fixture
def kept(time: Time, budget: Budget) -> KeptPhotographs:
    return KeptPhotographs(budget.cache(100), clock=lambda: time.now, later=time.later)


def photograph(name: str, size: int = 10) -> OwnFile:
    return OwnFile(name, f"{name}.jpg", bytes(size))


MINE = photograph("mine")


def test_a_page_that_is_loaded_again_has_its_photograph_back(kept: KeptPhotographs) -> None:
    kept.hold("first load", "my browser", [MINE])
    assert kept.find("my browser", "mine") == MINE  # the new page may come before the old one goes
    assert kept.used == 0
    kept.leave("first load")
    assert kept.find("my browser", "mine") == MINE
    assert kept.used == 10
    kept.hold("second load", "my browser", [MINE])  # which has it itself from now on
    assert kept.used == 0
    kept.leave("second load")
    assert kept.find("my browser", "mine") == MINE


@pytest.mark.parametrize("page_is_open", [True, False])
def test_nobody_else_gets_it(kept: KeptPhotographs, page_is_open: bool) -> None:
    kept.hold("my page", "my browser", [MINE])
    kept.hold("your page", "your browser", [photograph("yours")])
    if not page_is_open:
        kept.leave("my page")
    for browser, name in (("your browser", "mine"), ("", "mine"), ("my browser", "yours")):
        assert kept.find(browser, name) is None


def test_without_a_browser_that_can_be_told_nothing_is_kept(kept: KeptPhotographs) -> None:
    kept.hold("my page", "", [MINE])
    assert kept.find("", "mine") is None
    kept.leave("my page")
    assert kept.find("", "mine") is None
    assert kept.used == 0


def test_it_goes_at_its_time_though_nobody_asks(kept: KeptPhotographs, time: Time) -> None:
    kept.hold("early", "my browser", [MINE])
    kept.hold("late", "your browser", [photograph("yours", 20)])
    time.pass_by(10 * SECONDS)  # of pages that are open nothing ends
    kept.leave("early")
    time.pass_by(SECONDS / 2)
    kept.leave("late")
    assert (kept.used, len(time.due)) == (30, 1)
    time.pass_by(SECONDS / 2 - 1)
    assert kept.find("my browser", "mine") == MINE  # which makes it last no longer
    time.pass_by(1)
    assert kept.used == 20
    time.pass_by(SECONDS / 2)
    assert (kept.used, time.due) == (0, [])
    assert kept.find("your browser", "yours") is None


def test_one_whose_time_has_come_is_not_given_out(kept: KeptPhotographs, time: Time) -> None:
    kept.hold("my page", "my browser", [MINE])
    kept.leave("my page")
    time.now += SECONDS  # and nothing has woken yet
    assert kept.find("my browser", "mine") is None


def test_bytes_are_bounded_and_the_newest_stay(kept: KeptPhotographs, budget: Budget) -> None:
    newest, older, oldest = (photograph(name, 40) for name in ("newest", "older", "oldest"))
    kept.hold("my page", "my browser", [newest, older, oldest, photograph("enormous", 101)])
    kept.leave("my page")
    found = [kept.find("my browser", each) for each in ("newest", "older", "oldest", "enormous")]
    assert found == [newest, older, None, None]
    assert kept.used == budget.used == 80
    budget.give_back(1000)  # as where memory runs short
    assert kept.find("my browser", "newest") is None
    assert kept.used == 0


def test_a_page_that_leaves_what_another_one_has_keeps_it_once(kept: KeptPhotographs) -> None:
    for page in ("one tab", "another tab"):
        kept.hold(page, "my browser", [MINE])
    kept.leave("one tab")
    assert kept.used == 0
    assert kept.find("my browser", "mine") == MINE
    kept.leave("another tab")
    kept.leave("another tab")
    kept.leave("nobody")
    assert kept.used == 10
    assert "jpg'" in repr(MINE)
    assert "data" not in repr(MINE)  # of a photograph nothing gets into a log
