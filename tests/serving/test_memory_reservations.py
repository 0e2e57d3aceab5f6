"""Memory that is reserved before it is taken, and estimates against real networks."""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import hookviz
from hookviz.machine.memory import MEGABYTE, Memory
from hookviz.models.catalog import list_models
from hookviz.serving.memory_reservations import (
    MemoryNeed,
    MemoryReservations,
    OutOfMemoryError,
    loading_need,
    own_pass_need,
    pass_need,
)
from hookviz.serving.time_limit import TooLongError
from scripts.siege import kills, memory_group
from tests.loops import until
from tests.pictures import picture
from tests.serving import memory_crowd

ROOM = 800 * MEGABYTE  # of which 100 are the reserve


def need(megabytes: int, least: int | None = None) -> MemoryNeed:
    nbytes = megabytes * MEGABYTE
    least = nbytes if least is None else least * MEGABYTE
    return MemoryNeed(nbytes, least, lambda room: f"{room // MEGABYTE} would fit.")


def nothing_goes(_nbytes: int) -> int:
    return 0


@pytest.fixture
def line() -> MemoryReservations:
    return MemoryReservations(Memory(ROOM, lambda: 0), nothing_goes, lambda: 0, large_at_once=9)


class Visitor(threading.Thread):
    """Holds memory in a thread of its own until it is told to leave."""

    def __init__(self, line: MemoryReservations, megabytes: int, name: str = "") -> None:
        super().__init__(name=name, daemon=True)
        self.inside, self.leaves = threading.Event(), threading.Event()
        self.positions: list[int] = []
        self._line, self._need = line, need(megabytes)

    def run(self) -> None:
        with self._line.hold("It", self._need, self.positions.append):
            self.inside.set()
            assert self.leaves.wait(30)

    def has_gone_in_or_waits(self) -> bool:
        return self.inside.is_set() or bool(self.positions)


@contextmanager
def visitors(line: MemoryReservations, *megabytes: int) -> Iterator[list[Visitor]]:
    """Visitors who come one after the other, each once the one before has gone in or waits."""
    there = [Visitor(line, each) for each in megabytes]
    try:
        for visitor in there:
            visitor.start()
            until(visitor.has_gone_in_or_waits)
        yield there
    finally:
        for visitor in there:
            visitor.leaves.set()
        for visitor in there:
            visitor.join(30)


def test_two_that_do_not_fit_together_wait_for_each_other(line: MemoryReservations) -> None:
    with visitors(line, 400, 300, 400) as (first, beside, last):
        assert first.inside.is_set()
        assert beside.inside.is_set()
        assert not last.inside.is_set()
        assert last.positions[0] == 1
        first.leaves.set()
        assert last.inside.wait(20)
        assert line.held == 700 * MEGABYTE
    assert line.held == 0


def test_who_comes_first_goes_first_though_a_later_one_would_fit(line: MemoryReservations) -> None:
    with visitors(line, 500, 600, 100) as (first, second, third):
        until(lambda: len(second.positions) >= 2)
        assert not second.inside.is_set()
        assert not third.inside.is_set()
        assert third.positions[0] == 2
        first.leaves.set()
        assert second.inside.wait(20)
        assert third.inside.wait(20)


def test_what_is_small_passes_a_line(line: MemoryReservations) -> None:
    with visitors(line, 600, 600), line.hold("It", need(10)), line.hold("It", None):
        assert line.held == 600 * MEGABYTE


def test_a_failed_pass_and_who_leaves_the_line_give_back(line: MemoryReservations) -> None:
    with pytest.raises(ZeroDivisionError), line.hold("It", need(600)):
        raise ZeroDivisionError

    def leave(_position: int) -> None:
        raise KeyError

    with visitors(line, 600) as [first]:
        with pytest.raises(KeyError), line.hold("It", need(600), leave):
            pass
        first.leaves.set()
        with line.hold("It", need(700)):
            pass
    assert line.held == 0


def test_a_nested_hold_reserves_the_difference_alone(line: MemoryReservations) -> None:
    with line.hold("It", need(300)):
        with line.hold("It", need(200)):
            assert line.held == 300 * MEGABYTE
        with line.hold("It", need(500)):
            assert line.held == 500 * MEGABYTE
        assert line.held == 300 * MEGABYTE
        with visitors(line, 300), pytest.raises(OutOfMemoryError), line.hold("It", need(600)):
            pass  # without a wait: who could give back may wait for this one
    assert line.held == 0


def test_what_is_too_large_is_refused_in_words(line: MemoryReservations) -> None:
    with line.hold("It", need(750)):  # alone it may have the reserve
        pass
    with pytest.raises(OutOfMemoryError) as refused, line.hold("It", need(900)):
        pass
    assert str(refused.value) == (
        "It needs about 900 MB of memory, and this server has 800 MB for it. 800 would fit."
    )
    with line.hold("It", need(900, least=100)):  # which can do with less, alone
        assert line.held == 900 * MEGABYTE
    assert line.held == 0


def test_what_is_kept_goes_before_anybody_waits() -> None:
    kept = [400 * MEGABYTE]

    def give_back(_nbytes: int) -> int:
        return kept.pop() if kept else 0

    line = MemoryReservations(Memory(ROOM, lambda: sum(kept)), give_back, lambda: sum(kept), 9)
    with line.hold("It", need(250)):
        assert kept
    with line.hold("It", need(350)):
        assert not kept


def test_what_is_kept_stays_while_dropping_it_would_not_be_enough() -> None:
    kept = [200 * MEGABYTE]
    line = MemoryReservations(
        Memory(ROOM, lambda: sum(kept)), lambda _nbytes: kept.pop(), lambda: sum(kept), 9
    )
    with visitors(line, 500, 600) as (_first, second):
        until(lambda: len(second.positions) >= 2)
        assert kept
        second.leaves.set()


def test_large_ones_go_one_at_a_time_and_let_others_by() -> None:
    line = MemoryReservations(
        Memory(4096 * MEGABYTE, lambda: 0), nothing_goes, lambda: 0, large_at_once=1
    )
    with visitors(line, 300, 300, 100) as (first, second, smaller):
        until(lambda: len(second.positions) >= 2)
        assert smaller.inside.is_set()
        assert not second.inside.is_set()
        first.leaves.set()
        until(second.inside.is_set)


def test_what_is_small_leaves_what_is_kept_to_the_reserve_of_others() -> None:
    kept: list[int] = []
    line = MemoryReservations(
        Memory(ROOM, lambda: 620 * MEGABYTE + sum(kept)), lambda _nbytes: kept.pop(), lambda: 0, 9
    )
    with visitors(line, 70):
        kept.append(110 * MEGABYTE)  # 70 are free
        with line.hold("It", None):
            assert kept
    with line.hold("It", None):
        assert not kept


def test_what_is_small_does_not_wait_while_another_makes_room() -> None:
    begun, goes_on = threading.Event(), threading.Event()

    def give_back(_nbytes: int) -> int:
        begun.set()
        assert goes_on.wait(30)
        return 0

    line = MemoryReservations(Memory(ROOM, lambda: ROOM), give_back, lambda: 0, 9)
    first, second = (Visitor(line, 1), Visitor(line, 1))
    try:
        first.start()
        assert begun.wait(30)
        second.start()
        assert second.inside.wait(10)
        assert not first.inside.is_set()
    finally:
        for each in (goes_on, first.leaves, second.leaves):
            each.set()


@pytest.mark.usefixtures("runs_of_a_second")
def test_a_wait_ends_when_a_run_would(line: MemoryReservations) -> None:
    with visitors(line, 600), pytest.raises(TooLongError), line.hold("It", need(600)):
        pass
    assert line.held == 0


@pytest.mark.by_day
def test_visitors_whose_passes_do_not_fit_together_end_no_server() -> None:
    """In a control group of 1.1 GB, where all three at once take more."""
    names = ["squeezenet1_1", "resnet18", "resnet50"]
    bounds = {"HOOKVIZ_RUNS": "3", "HOOKVIZ_SESSION_MB": "64"}
    try:
        with memory_group(1100 * MEGABYTE) as folder:
            status, answered = memory_crowd.run_in_group(folder, names, **os.environ, **bounds)
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    assert status == 0
    assert sorted(answered.splitlines()) == sorted(f"{name} captured" for name in names)


@pytest.mark.sweep("a minute; by day three networks show it")
def test_the_twelve_largest_networks_at_once_end_no_server_of_4_gb() -> None:
    specs = [spec for spec in list_models() if not spec.name.startswith("vit_")]  # of one size
    names = [spec.name for spec in sorted(specs, key=lambda spec: -spec.parameters)[:12]]
    try:
        with memory_group(4096 * MEGABYTE) as folder:
            status, answered = memory_crowd.run_in_group(folder, names, **os.environ)
            killed = kills(folder)
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    assert (status, killed) == (0, 0)
    assert sorted(line.split()[0] for line in answered.splitlines()) == sorted(names)
    assert re.search("^regnet_y_128gf refused: .* more than the", answered, re.MULTILINE)
    assert re.search("^regnet_y_32gf captured$", answered, re.MULTILINE)


def test_a_pass_needs_five_of_its_largest_output_and_what_is_recorded() -> None:
    model = hookviz.load_model("resnet18", "random")
    need = pass_need(model, (3, 224, 224))
    assert need is not None
    largest = 4 * 64 * 112 * 112
    assert 5 * largest < need.nbytes < 5 * largest + 30 * MEGABYTE
    assert need.nbytes == need.least
    large = pass_need(model, (3, 1024, 1024))
    assert large is not None
    assert large.nbytes == 5 * 4 * 64 * 512 * 512 + 256 * MEGABYTE  # of a session at most


def test_what_keeps_all_takes_more_where_there_is_more() -> None:
    model = hookviz.load_model("resnet18", "random")
    need = pass_need(model, (3, 1024, 1024), keeps_all=True)
    assert need is not None
    assert need.nbytes > need.least + 100 * MEGABYTE


def test_an_input_and_the_models_own_size_tell_the_shape() -> None:
    model = hookviz.load_model("shapesnet")
    image = hookviz.prepare_input(model, picture(0, 64, 64), size=256)
    by_input, by_shape = pass_need(model, image), pass_need(model, (3, 256, 256))
    assert by_input is not None
    assert by_shape is not None
    assert by_input.nbytes == by_shape.nbytes
    own, square = own_pass_need(model), own_pass_need(model, 256)
    assert own is not None
    assert square is not None
    assert square.nbytes == by_shape.nbytes > own.nbytes


def test_what_the_network_can_not_take_needs_nothing() -> None:
    assert pass_need(hookviz.load_model("shapesnet"), (2, 64, 64)) is None


@pytest.mark.parametrize(
    ("room", "words"),
    [
        (0.26, "An input of 512×512 pixels fits."),
        (0.0001, "A smaller model takes less."),
        (-1, "A smaller model takes less."),
    ],
)
def test_a_smaller_input_is_named(room: float, words: str) -> None:
    need = pass_need(hookviz.load_model("resnet18", "random"), (3, 1024, 1024))
    assert need is not None
    assert need.smaller(int(room * need.least)) == words


def test_loading_needs_the_weights_and_more_where_they_are_read() -> None:
    assert loading_need(100_000_000, random=True).nbytes == pytest.approx(416e6)
    need = loading_need(100_000_000, random=False)
    assert need.nbytes == need.least == 800e6
    with_reader = loading_need(1_000_000, random=False, reader=464_000_000)
    assert (with_reader.nbytes, with_reader.least) == (464e6, 8e6)
    assert need.smaller(400_000_000) == "A model of at most 50 million parameters fits."
    assert need.smaller(-1) == "Try again in a moment."
