"""A session's turn, whoever waits for it; tests/ui/serving/test_queue_wait.py has it on a page."""

import copy
import io
import json
import logging
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

import hookviz
from hookviz.errors import HookVizError
from hookviz.explorer.layers import capture_layer
from hookviz.serving import capacity, logs, turns
from hookviz.serving.fair_queue import FairQueue
from hookviz.serving.time_limit import TooLongError
from hookviz.serving.turns import RunSlot, WatchedRun
from hookviz.types import ignore
from tests.explorer.asking import subject_of
from tests.live.turns import held_up
from tests.loops import until
from tests.serving.test_fair_queue import Gone, asking

NEVER = 1000.0


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    logger = logging.getLogger("hookviz")
    before = logger.handlers[:], logger.level
    stream = io.StringIO()
    logs.set_up("json", stream)
    yield stream
    logger.handlers[:], level = before
    logger.setLevel(level)


def test_a_turn_is_written_down_however_it_ends(log: io.StringIO) -> None:
    with turns.turn("me", "A run", model="resnet18", layer="conv1"):
        pass
    for error in (HookVizError("words"), ZeroDivisionError("words"), KeyboardInterrupt()):
        with pytest.raises(type(error)), turns.turn("me", "A run", "previews"):
            raise error
    events = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [(each["event"], each["outcome"]) for each in events] == [
        ("capture", "done"),
        ("previews", "refused"),
        ("previews", "failed"),
        ("previews", "stopped"),
    ]
    assert (events[0]["session"], events[0]["model"], events[0]["layer"]) == (
        *("me", "resnet18", "conv1"),
    )
    assert len({each["request"] for each in events}) == 4
    assert "words" not in log.getvalue()
    assert capacity.queue().running == 0


def test_who_waits_is_told_the_place_and_leaves_by_raising() -> None:
    def leave(position: int) -> None:
        raise KeyError(position)

    with held_up():
        with pytest.raises(KeyError, match="1"), turns.turn("me", "A run", on_position=leave):
            pass
        assert capacity.queue().waiting == 0


def test_two_owners_of_one_session_have_a_place_each() -> None:
    entered = threading.Event()

    def beside() -> None:
        with turns.turn("me", "Another run"):
            entered.set()

    with turns.turn("me", "A long run", owner=("long", "me")):
        other = threading.Thread(target=beside)
        other.start()
        if capacity.queue().runs > 1:
            assert entered.wait(10)
    other.join(10)
    assert entered.is_set()


def never(_position: int) -> None:
    raise AssertionError("nobody has to wait here")


class Maker(threading.Thread):
    """A long run of one person, which yields when it is told and notes when it resumes."""

    def __init__(self, fair_queue: FairQueue, owner: str, order: list[str] | None = None) -> None:
        super().__init__(daemon=True)
        self.owner, self.order = owner, order if order is not None else []
        self.positions: list[int] = []
        self.inside, self.on, self.ended = (threading.Event() for _ in range(3))
        self.leave, self.may_end = threading.Event(), threading.Event()
        self.may_end.set()
        self.waited = -1.0
        self._todo: queue.Queue[bool] = queue.Queue()
        self._queue = fair_queue
        self.start()
        assert self.inside.wait(20)

    def run(self) -> None:
        try:
            with self._queue.turn(self.owner):
                self.order.append(self.owner)
                self.inside.set()
                while self._todo.get(timeout=60):
                    try:
                        self.waited = self._queue.yield_turn(self.owner, self._on_position)
                    except Gone:
                        self.ended.set()
                        self.may_end.wait(20)
                        raise
                    self.order.append(self.owner)
                    self.on.set()
        except Gone:
            pass

    def yield_turn(self) -> None:
        """Let others in, and return once this waits for them or has gone on."""
        self.on.clear()
        self.positions.clear()
        self._todo.put(True)
        until(lambda: bool(self.positions) or self.on.is_set())

    def end(self) -> None:
        self._todo.put(False)
        self.leave.set()
        self.join(20)
        assert not self.is_alive()

    def _on_position(self, position: int) -> None:
        if self.leave.is_set():
            raise Gone
        self.positions.append(position)


def test_who_waits_is_let_in_and_the_run_goes_on_after_them() -> None:
    fair_queue, order = FairQueue(1), list[str]()
    maker = Maker(fair_queue, "maker", order)
    with asking(fair_queue, "a", "b", order=order) as (first, second):
        maker.yield_turn()
        assert first.inside.wait(20)
        until(lambda: maker.positions[-1:] == [2])  # b is before it
        assert (fair_queue.running, fair_queue.waiting) == (1, 1)
        first.done.set()
        assert second.inside.wait(20)
        second.done.set()
        assert maker.on.wait(20)
    assert maker.waited > 0
    maker.end()
    assert order == ["maker", "a", "b", "maker"]
    assert (fair_queue.running, fair_queue.waiting) == (0, 0)


def test_where_nobody_could_be_let_in_the_run_goes_on_at_once() -> None:
    fair_queue = FairQueue(2)
    with fair_queue.turn("maker"):
        assert fair_queue.yield_turn("maker", never) == 0
        with asking(fair_queue, "a") as [person]:
            assert person.inside.wait(20)
            assert fair_queue.yield_turn("maker", never) == 0
    assert fair_queue.yield_turn("maker", never) == 0  # without a turn there is none to leave


def test_who_comes_while_it_waits_goes_first_too_but_not_for_ever() -> None:
    for promote_after, expected in ((NEVER, ["a", "b", "maker"]), (0.0, ["a", "maker", "b"])):
        fair_queue = FairQueue(1, promote_after=promote_after)
        order: list[str] = []
        maker = Maker(fair_queue, "maker", order)
        with asking(fair_queue, "a", order=order) as [first]:
            maker.yield_turn()
            assert first.inside.wait(20)
            with asking(fair_queue, "b", order=order) as [second]:
                first.done.set()
                second.done.set()
                assert maker.on.wait(20)
                maker.end()
        assert order == ["maker", *expected]


def test_those_who_gave_way_take_turns() -> None:
    fair_queue, order = FairQueue(1, promote_after=NEVER), list[str]()
    first = Maker(fair_queue, "x", order)
    with asking(fair_queue, "person", order=order) as [person]:
        first.yield_turn()
        assert person.inside.wait(20)
    assert first.on.wait(20)
    started: list[Maker] = []
    coming = threading.Thread(target=lambda: started.append(Maker(fair_queue, "y", order)))
    coming.start()
    until(lambda: fair_queue.waiting == 1)
    first.yield_turn()
    coming.join(20)
    [second] = started
    makers = [second, first]
    for turn in range(6):
        makers[turn % 2].yield_turn()
        assert makers[(turn + 1) % 2].on.wait(20)
    first.end()
    second.end()
    assert "".join(order[3:]) == "yxyxyxy"


def test_one_place_of_several_is_kept_free_of_them_while_people_come() -> None:
    for quiet, running in ((NEVER, 1), (0.0, 2)):
        fair_queue = FairQueue(2, quiet=quiet, promote_after=NEVER)
        makers = [Maker(fair_queue, "x"), Maker(fair_queue, "y")]
        with asking(fair_queue, "a", "b") as people:
            for maker, person in zip(makers, people, strict=True):
                maker.yield_turn()
                assert person.inside.wait(20)
        until(lambda: sum(maker.on.is_set() for maker in makers) == running)  # noqa: B023
        until(lambda: fair_queue.running == running)  # noqa: B023
        if running == 1:
            with asking(fair_queue, "c") as [person]:
                assert person.inside.wait(20)  # at once
        for maker in sorted(makers, key=lambda one: not one.on.is_set()):
            maker.end()
        assert (fair_queue.running, fair_queue.waiting) == (0, 0)


def test_a_run_that_is_ended_while_it_waits_holds_nothing() -> None:
    fair_queue = FairQueue(1, grace=NEVER)
    order: list[str] = []
    maker = Maker(fair_queue, "maker", order)
    maker.may_end.clear()
    with asking(fair_queue, "a", "b", order=order) as (first, second):
        maker.yield_turn()
        assert first.inside.wait(20)
        maker.leave.set()  # a click, or a closed tab
        assert maker.ended.wait(20)
        assert fair_queue.waiting == 1
        with asking(fair_queue, "maker", order=order) as [again]:  # the page's next run
            first.done.set()
            second.done.set()
            assert again.inside.wait(20)
            maker.may_end.set()
            maker.join(20)
            assert fair_queue.running == 1  # the end of the old run is not the end of the new one
    assert order == ["maker", "a", "b", "maker"]
    assert (fair_queue.running, fair_queue.waiting) == (0, 0)


def test_progress_lets_others_in_and_the_wait_is_not_counted() -> None:
    fair_queue, order = FairQueue(1), list[str]()
    shares: list[float] = []
    positions: list[int] = []
    with asking(fair_queue, "ahead", order=order) as [ahead]:

        def person() -> None:
            with fair_queue.turn("person"):
                order.append("person")
                until(lambda: bool(positions))

        other = threading.Thread(target=person)
        ahead.done.set()
        ahead.join(20)
        with fair_queue.turn("maker"):
            slot = RunSlot(fair_queue, "maker", "A run")
            deadline = slot.limit.deadline
            progress = slot.yielding(shares.append, positions.append, interval=0)
            progress(0.1)
            assert slot.yielded == 0
            other.start()
            until(lambda: fair_queue.waiting == 1)
            slot.yielding(interval=NEVER)(0.2)  # it has not computed for long enough
            progress(1.0)  # and here it is over
            assert slot.yielded == 0
            progress(0.5)
            order.append("maker")
            assert slot.yielded > 0
            assert slot.limit.deadline == pytest.approx(deadline + slot.yielded)
        other.join(20)
    assert order == ["ahead", "person", "maker"]
    assert shares == [0.1, 1.0, 0.5]
    assert slot.limit.deadline > time.monotonic()


@pytest.mark.parametrize("is_own", [False, True])
def test_a_pass_lets_others_in_between_layers_unless_its_network_is_locked(is_own: bool) -> None:
    model = hookviz.load_model("shapesnet")
    if is_own:
        model = hookviz.wrap(copy.deepcopy(model.network))
    fair_queue, order = FairQueue(1), list[str]()

    def person() -> None:
        with fair_queue.turn("person"):
            order.append("person")

    other = threading.Thread(target=person)

    def slow_layer() -> None:
        if not other.ident:
            other.start()
            until(lambda: fair_queue.waiting == 1)
        time.sleep(turns.YIELD_INTERVAL / 4)

    @contextmanager
    def take_turn(label: str, _kind: str, _layer: str) -> Iterator[WatchedRun]:
        with fair_queue.turn("maker"):
            yield WatchedRun(RunSlot(fair_queue, "maker", label), slow_layer, ignore, ignore)
            order.append("maker")

    capture_layer(subject_of(model, take_turn=take_turn), list(hookviz.list_layers(model))[-1].name)
    other.join(20)
    assert order == (["maker", "person"] if is_own else ["person", "maker"])


class GoneError(BaseException):
    """Nobody waits any more."""


class Watch:
    """Someone who waits until they go."""

    def __init__(self) -> None:
        self.is_gone = False
        self.shares: list[float] = []
        self.places: list[int] = []

    def check(self) -> None:
        if self.is_gone:
            raise GoneError

    def on_position(self, position: int) -> None:
        self.check()
        self.places.append(position)


def test_progress_is_told_and_ends_the_run_when_nobody_waits() -> None:
    watch, told = Watch(), list[float]()
    with turns.turn("me", "A run") as slot:
        run = WatchedRun(slot, watch.check, watch.shares.append, watch.on_position)
        for progress in (run.limit.within(told.append), run.yielding(told.append)):
            progress(0.5)
        watch.is_gone = True
        for progress in (run.limit.within(), run.yielding()):
            with pytest.raises(GoneError):
                progress(0.7)
    assert watch.shares == told == [0.5, 0.5]
    assert capacity.queue().running == 0


def test_torch_ends_when_nobody_waits() -> None:
    watch = Watch()
    with turns.turn("me", "A run") as slot:
        run = WatchedRun(slot, watch.check, watch.shares.append, watch.on_position)
        with run.limit.over_torch():
            torch.zeros(2).add(1)
            watch.is_gone = True
            with pytest.raises(GoneError):
                torch.zeros(2).add(1)
    assert torch.zeros(2).add(1).sum() == 2  # and only there
    assert capacity.queue().running == 0


@pytest.mark.usefixtures("runs_of_a_second")
def test_the_time_limit_holds() -> None:
    watch = Watch()
    with turns.turn("me", "A run") as slot:
        run = WatchedRun(slot, watch.check, watch.shares.append, watch.on_position)
        time.sleep(1.1)
        with pytest.raises(TooLongError):
            run.limit.within()(0.5)
