"""The queue, with real threads."""

import itertools
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hookviz.serving.fair_queue import FairQueue
from tests.loops import until


class Gone(BaseException):
    """How Streamlit ends a page's run."""


class Person(threading.Thread):
    """Somebody who asks for a turn, holds it until told, and notes the places heard."""

    def __init__(
        self,
        fair_queue: FairQueue,
        who: str,
        order: list[str] | None = None,
        *,
        background: bool = False,
    ) -> None:
        super().__init__(daemon=True)
        self._background = background
        self.who = who
        self.positions: list[int] = []
        self.done, self.leave = threading.Event(), threading.Event()
        self.inside = threading.Event()
        self.gone = False
        self._queue = fair_queue
        self._order = order if order is not None else []

    def run(self) -> None:
        try:
            with self._queue.turn(self.who, self._on_position, background=self._background):
                self._order.append(self.who)
                self.inside.set()
                self.done.wait(30)
        except Gone:
            self.gone = True

    def _on_position(self, position: int) -> None:
        if self.leave.is_set():
            raise Gone
        self.positions.append(position)


@contextmanager
def asking(
    fair_queue: FairQueue, *names: str, order: list[str] | None = None, background: bool = False
) -> Iterator[list[Person]]:
    """People who ask one after the other."""
    people = []
    for who in names:
        person = Person(fair_queue, who, order, background=background)
        person.start()
        until(lambda one=person: bool(one.positions) or one.inside.is_set())  # type: ignore[misc]
        people.append(person)
    try:
        yield people
    finally:
        for person in people:
            person.done.set()
        for person in people:
            person.join(30)
        assert not any(person.is_alive() for person in people)


def test_they_come_in_the_order_in_which_they_asked_and_see_their_place() -> None:
    fair_queue = FairQueue(1)
    order: list[str] = []
    with asking(fair_queue, *"abcd", order=order) as people:
        until(lambda: people[3].positions[-1:] == [3])
        for person in people:
            person.inside.wait(20)
            assert (fair_queue.running, order[-1]) == (1, person.who)
            person.done.set()
    assert order == list("abcd")
    assert people[0].positions == []  # who need not wait is told nothing
    heard = [place for place, _ in itertools.groupby(people[3].positions)]
    assert heard[0] == 3  # and nearer each time; turns can pass more quickly than they are told
    assert heard == sorted(heard, reverse=True)
    assert (fair_queue.running, fair_queue.waiting) == (0, 0)


def test_who_waits_is_told_again_and_again() -> None:
    with asking(FairQueue(1), "a", "b") as (_, second):
        started = time.monotonic()
        until(lambda: len(second.positions) >= 6)
        assert time.monotonic() - started > 1  # and not in a hurry
        assert set(second.positions) == {1}


def test_who_leaves_is_dropped_and_those_behind_move_up() -> None:
    fair_queue = FairQueue(1)
    with asking(fair_queue, *"abcd") as (first, second, third, fourth):
        until(lambda: fourth.positions[-1:] == [3])
        second.leave.set()
        second.join(20)
        assert second.gone
        until(lambda: fourth.positions[-1] == 2)
        assert fair_queue.waiting == 2
        first.done.set()
        assert third.inside.wait(20)
        assert not fourth.inside.is_set()


def test_a_click_keeps_the_place_and_a_long_absence_does_not() -> None:
    for grace, expected in ((30.0, "abc"), (0.0, "acb")):
        fair_queue = FairQueue(1, grace=grace)
        order: list[str] = []
        with asking(fair_queue, *"abc", order=order) as people:
            people[1].leave.set()
            people[1].join(20)
            with asking(fair_queue, "b", order=order) as [again]:  # Streamlit repeats the run
                for person in (*people, again):
                    person.done.set()
        assert order == list(expected)


def test_a_place_that_is_held_stops_nobody() -> None:
    fair_queue = FairQueue(1, grace=30)
    with asking(fair_queue, *"abc") as (first, second, third):
        second.leave.set()
        second.join(20)
        first.done.set()
        assert third.inside.wait(20)


def test_nobody_has_two_places() -> None:
    fair_queue = FairQueue(1)
    order: list[str] = []
    with asking(fair_queue, *"ab", order=order) as people:
        twice = [Person(fair_queue, "b", order) for _ in range(3)]  # three more tabs, as it were
        for person in twice:
            person.start()
        until(lambda: all(person.positions for person in twice))
        assert fair_queue.waiting == 1
        with asking(fair_queue, "c", order=order) as others:
            for person in (*people, *twice, *others):
                person.done.set()
            for person in twice:
                person.join(20)
    assert order == ["a", "b", "c", "b", "b", "b"]


def test_one_person_holds_one_run_though_there_is_room() -> None:
    fair_queue = FairQueue(3)
    with asking(fair_queue, "a") as [first]:
        again = Person(fair_queue, "a")
        again.start()
        until(lambda: len(again.positions) > 1)
        assert fair_queue.running == 1
        first.done.set()
        assert again.inside.wait(20)
        again.done.set()
        again.join(20)


def test_a_turn_inside_of_ones_own_is_had_at_once() -> None:
    fair_queue = FairQueue(1)
    with fair_queue.turn("a"):
        with fair_queue.turn("a") as waited:
            assert waited == 0
        assert fair_queue.running == 1
    assert fair_queue.running == 0


def test_who_stands_behind_lets_all_others_go_first() -> None:
    fair_queue = FairQueue(1)
    order: list[str] = []
    with (
        asking(fair_queue, "first", order=order) as [first],
        asking(fair_queue, "stream", "another", order=order, background=True) as streams,
        asking(fair_queue, "a", "b", order=order) as people,
    ):
        until(lambda: [person.positions[-1] for person in (*people, *streams)] == [1, 2, 3, 4])
        assert fair_queue.waiting == 2  # people, that is
        for person in (first, *streams, *people):
            person.done.set()
        for person in (*people, *streams):
            person.join(20)
    assert order == ["first", "a", "b", "stream", "another"]


def test_of_several_places_one_stays_free_of_what_stands_behind() -> None:
    fair_queue = FairQueue(3)
    with asking(fair_queue, *"xyz", background=True) as (first, second, third):
        assert first.inside.wait(20)
        assert second.inside.wait(20)
        until(lambda: len(third.positions) >= 2)
        assert not third.inside.is_set()
        with asking(fair_queue, "a") as [person]:
            assert person.inside.wait(20)
        first.done.set()
        assert third.inside.wait(20)
    assert (fair_queue.running, fair_queue.waiting) == (0, 0)


def test_those_behind_take_their_turns_one_after_the_other() -> None:
    """Two places are there, and one of them is kept free; each asks again as soon as it had one."""
    fair_queue, order, going_on = FairQueue(2), list[str](), set("xyz")

    def go_on(who: str) -> None:
        for number in range(8):
            with fair_queue.turn(who, background=True):
                order.append(who)
                until(lambda: len(fair_queue._queue) == len(going_on) - 1)
                if number == 7:
                    going_on.remove(who)

    threads = [threading.Thread(target=go_on, args=(who,)) for who in "xyz"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(order[:3]) == ["x", "y", "z"]
    assert order == 8 * order[:3]


@pytest.mark.parametrize("error", [Gone, ValueError])
def test_a_run_that_fails_makes_room(error: type[BaseException]) -> None:
    fair_queue = FairQueue(1)
    with pytest.raises(error), fair_queue.turn("a"):
        raise error
    with fair_queue.turn("b") as waited:
        assert waited < 5


def test_a_crowd_that_comes_and_goes_never_passes_the_bound() -> None:
    fair_queue = FairQueue(3, grace=0.01)
    lock, now, most, served = threading.Lock(), 0, 0, 0

    def person(seed: int) -> None:
        nonlocal now, most, served
        rng = random.Random(seed)

        def tell(_position: int) -> None:
            if rng.random() < 0.2:
                raise Gone

        for _ in range(15):
            try:
                with fair_queue.turn(seed % 12, tell):
                    with lock:
                        now += 1
                        most = max(most, now)
                    time.sleep(rng.random() / 300)
                    with lock:
                        now -= 1
                        served += 1
            except Gone:
                continue

    people = [threading.Thread(target=person, args=(seed,)) for seed in range(24)]
    for thread in people:
        thread.start()
    for thread in people:
        thread.join(60)
    assert not any(thread.is_alive() for thread in people)
    assert most == 3
    assert served > 60
    assert (fair_queue.running, fair_queue.waiting) == (0, 0)


def test_an_uncontended_turn_costs_less_than_a_millisecond() -> None:
    fair_queue = FairQueue(2)
    times = []
    for _ in range(200):
        started = time.perf_counter()
        with fair_queue.turn("a"):
            pass
        times.append(time.perf_counter() - started)
    assert sorted(times)[len(times) // 4] < 0.001
