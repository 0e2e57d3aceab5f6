"""The collector, asked at chosen moments instead of by its own thread."""

import gc
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator

import pytest

from hookviz.serving import garbage
from hookviz.serving.garbage import GarbageCollector


class Ring:
    """Refers to itself, so that only a collection frees it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    """What a process had before, so that these tests change nothing of the others."""
    before = gc.get_threshold()
    gc.set_threshold(0)  # nothing is collected but by what is tested
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def grow(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(gc, "get_count", lambda: (0, 0, count))


def test_new_garbage_is_collected_between_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    collector, now = GarbageCollector(), time.monotonic()
    ring = weakref.ref(Ring())
    grow(monkeypatch, garbage._DUE - 1)
    assert collector.collect_if_due(now) == ""
    grow(monkeypatch, garbage._DUE)
    with collector.at_work():
        assert collector.collect_if_due(now) == ""
        assert ring() is not None
    assert collector.collect_if_due(now) == "new"
    assert ring() is None


def test_a_server_that_never_rests_is_collected_too(monkeypatch: pytest.MonkeyPatch) -> None:
    collector, now = GarbageCollector(), time.monotonic()
    ring = weakref.ref(Ring())
    grow(monkeypatch, garbage._OVERDUE)
    with collector.at_work():
        assert collector.collect_if_due(now) == "new"
        assert ring() is None
        assert collector.collect_if_due(now + garbage._AT_LEAST + 1) == "everything"


def test_what_was_frozen_alive_is_freed_once_the_server_is_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collector = GarbageCollector()
    kept = Ring()
    ring = weakref.ref(kept)
    grow(monkeypatch, garbage._DUE)
    with collector.at_work():
        pass
    assert collector.collect_if_due(time.monotonic()) == "new"
    del kept
    assert collector.collect_if_due(time.monotonic()) == "new"
    assert ring() is not None  # it was alive the first time, and frozen
    later = time.monotonic() + garbage._EVERYTHING + 1
    assert collector.collect_if_due(later) == "everything"
    assert ring() is None
    assert collector.collect_if_due(later + garbage._EVERYTHING + 1) == "new"  # nothing ran since


def test_a_server_that_grew_is_collected_though_it_never_rests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used = [1000]
    collector, now = GarbageCollector(lambda: used[0]), time.monotonic()
    grow(monkeypatch, 0)
    soon, later = now + garbage._EVERYTHING - 1, now + garbage._EVERYTHING + 1
    with collector.at_work():
        used[0] = 1249
        assert collector.collect_if_due(later) == ""
        used[0] = 1251
        assert collector.collect_if_due(soon) == ""  # and not again and again
        assert collector.collect_if_due(later) == "everything"
        assert collector.collect_if_due(later + garbage._EVERYTHING + 1) == ""  # as large as it is
        used[0] = 1600
        assert collector.collect_if_due(later + garbage._EVERYTHING + 1) == "everything"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_it_frees_goes_back_to_the_system() -> None:
    program = """
import time
from hookviz.machine.memory import resident
from hookviz.serving.garbage import GarbageCollector
collector = GarbageCollector()
before = resident()
kept, lost = [], []
for number in range(200_000):  # between what stays, so that the heap does not shrink by itself
    (kept if number % 50 == 0 else lost).append(bytes(1000))
full = resident()
del lost
with collector.running():
    collector.collect_if_due(time.monotonic() + 6)  # idle
    after = resident()
assert full - before > 150e6, (before, full)
assert after - before < 100e6, (before, full, after)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_it_takes_the_place_of_python_s_own_and_gives_it_back() -> None:
    gc.set_threshold(700, 10, 10)
    with GarbageCollector().running():
        assert gc.get_freeze_count() > 1000
        assert gc.get_threshold()[2] > 1_000_000
    assert gc.get_threshold() == (700, 10, 10)
    assert gc.get_freeze_count() == 0


def test_what_a_start_left_behind_waits_until_the_server_is_idle() -> None:
    collector, ring = GarbageCollector(), weakref.ref(Ring())
    with collector.running():
        soon, idle = time.monotonic(), time.monotonic() + garbage._IDLE + 1
        assert collector.collect_if_due(soon) == ""
        assert ring() is not None  # whoever comes first waits for no collection
        with collector.at_work():
            assert collector.collect_if_due(idle) == ""
        assert collector.collect_if_due(idle) == "everything"
        assert ring() is None


def test_nothing_is_collected_while_it_is_put_off_and_then_as_before() -> None:
    assert gc.isenabled()
    with garbage.put_off():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), garbage.put_off():
        raise ZeroDivisionError
    assert gc.isenabled()
    gc.disable()
    try:
        with garbage.put_off():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
