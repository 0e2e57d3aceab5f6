"""Atlases that sessions make of their own images, beside one another and behind who explores."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache as once

import pytest

from hookviz.atlas.growing import GrowingAtlas
from hookviz.capturing.cache import Budget, ByteCache
from hookviz.serving import capacity, session_atlases
from hookviz.serving.fair_queue import FairQueue
from hookviz.serving.session_atlases import SessionAtlases
from hookviz.types import Model
from tests.loops import until
from tests.pictures import encoded, picture


@once
def files() -> list[tuple[str, bytes]]:
    return [(f"{seed}.png", encoded(picture(seed))) for seed in range(12)]


@pytest.fixture(autouse=True)
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn for each image, and a queue of this test's own."""
    fair_queue = FairQueue(2)
    monkeypatch.setattr(session_atlases, "_STEP_SECONDS", 0.0)
    monkeypatch.setattr(capacity, "queue", lambda: fair_queue)


def cache(limit: int = 10**8) -> ByteCache:
    return Budget(10**9).cache(limit)


class Gate:
    """Lends a model, for as many times as it was told to."""

    def __init__(self, model: Model, times: int = 10**6) -> None:
        self.model = model
        self.left = threading.Semaphore(times)

    @contextmanager
    def __call__(self) -> Iterator[Model]:
        self.left.acquire()
        yield self.model


def test_it_is_made_and_counts_in_the_sessions_bytes(tiny: Model) -> None:
    kept = cache()
    atlases = SessionAtlases("a", kept, 10**8)
    assert atlases.making is None
    names = atlases.make(Gate(tiny), tiny.digest, [*files(), ("broken.png", b"words")])
    assert names[-1] == "broken.png"
    atlas = until(lambda: atlases.atlas(tiny.digest))
    assert atlases.making is None
    assert atlas.counts["tallied"] == 12
    assert list(atlas.left_out) == ["broken.png"]
    assert atlas.belongs_to(tiny)
    assert kept.used > sum(each.nbytes for each in atlas._numbers.values()) // 2
    atlases.drop(tiny.digest)
    assert atlases.atlas(tiny.digest) is None
    assert kept.used == 0


def test_it_can_be_stopped_and_gone_on_with(tiny: Model) -> None:
    kept = cache()
    atlases = SessionAtlases("a", kept, 10**8)
    gate, began = Gate(tiny, 5), time.monotonic()
    atlases.make(gate, tiny.digest, files())
    until(
        lambda: atlases.making and atlases.making.progress.done == 4
    )  # the first learns the layers
    making = atlases.making
    assert making is not None
    assert making.running
    assert making.per_second >= 4 / (time.monotonic() - began)
    atlases.stop()
    making = atlases.making
    assert making is not None
    assert not making.running
    assert making.per_second == 0
    assert not making.fault
    gate.left.release(10**6)
    time.sleep(0.1)
    assert atlases.making == making
    assert atlases.atlas(tiny.digest) is None
    atlases.go_on()
    atlas = until(lambda: atlases.atlas(tiny.digest))
    whole = SessionAtlases("b", cache(), 10**8)
    whole.make(Gate(tiny), tiny.digest, files())
    other = until(lambda: whole.atlas(tiny.digest))
    for layer, channels in other.layers.items():
        for channel in range(channels):
            mine, theirs = (
                atlas.top_activations(layer, channel),
                other.top_activations(layer, channel),
            )
            assert [(e.image.name, e.value, e.cell) for e in mine] == [
                (e.image.name, e.value, e.cell) for e in theirs
            ]


def test_who_explores_goes_first(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes after an atlas has begun to wait has their turn before its next image."""
    fair_queue = FairQueue(1)
    monkeypatch.setattr(capacity, "queue", lambda: fair_queue)
    atlases, gate = SessionAtlases("a", cache(), 10**8), Gate(tiny, 3)
    atlases.make(gate, tiny.digest, files())

    def done() -> int:
        return atlases.making.progress.done if atlases.making else -1

    until(lambda: done() == 2)
    seen: list[int] = []

    def explore() -> None:
        with fair_queue.turn("two"):
            seen.append(done())

    person = threading.Thread(target=explore)
    with fair_queue.turn("one"):
        gate.left.release(10**6)
        until(lambda: fair_queue._queue)  # the atlas
        person.start()
        until(lambda: len(fair_queue._queue) == 2)
    person.join()
    assert seen == [2]
    until(lambda: atlases.atlas(tiny.digest))


def test_two_sessions_have_their_own(tiny: Model) -> None:
    budget = Budget(10**9)
    one, other = (SessionAtlases(name, budget.cache(10**8), 10**8) for name in "ab")
    one.make(Gate(tiny), tiny.digest, files()[:6])
    other.make(Gate(tiny), tiny.digest, files()[6:])
    first = until(lambda: one.atlas(tiny.digest))
    second = until(lambda: other.atlas(tiny.digest))
    assert {image.name for image in first.images}.isdisjoint(i.name for i in second.images)
    one.drop(tiny.digest)
    assert one.atlas(tiny.digest) is None
    assert other.atlas(tiny.digest) is second


def test_the_end_of_a_session_in_mid_step_gives_all_back(
    tiny: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = Budget(10**9)
    kept = budget.cache(10**8)
    atlases = SessionAtlases("a", kept, 10**8)
    working, leave = threading.Event(), threading.Event()
    go_on = GrowingAtlas.go_on

    def slowly(self: GrowingAtlas, model: Model, seconds: float) -> None:
        go_on(self, model, seconds)
        if self.progress.done == 3:
            working.set()
            assert leave.wait(30)

    monkeypatch.setattr(GrowingAtlas, "go_on", slowly)
    atlases.make(Gate(tiny), tiny.digest, files())
    assert working.wait(30)
    assert budget.used > 0
    [thread] = [each for each in threading.enumerate() if each.name == "hookviz-own-atlas"]
    atlases.end()
    kept.clear()
    leave.set()
    thread.join(30)
    assert not thread.is_alive()
    assert budget.used == 0
    assert atlases.making is None


def test_it_gives_way_and_says_so(tiny: Model) -> None:
    kept = cache()
    atlases = SessionAtlases("a", kept, 10**8)
    gate = Gate(tiny, 4)
    atlases.make(gate, tiny.digest, files())
    until(lambda: atlases.making and atlases.making.progress.done == 3)
    kept.clear()
    gate.left.release(10**6)
    making = until(lambda: atlases.making and atlases.making.fault and atlases.making)
    assert "gave way" in making.fault
    assert not making.running
    assert kept.used == 0
    atlases.go_on()  # there is nothing to go on with
    assert atlases.making == making
    small = SessionAtlases("b", cache(1000), 10**8)
    small.make(Gate(tiny), tiny.digest, files())
    assert "gave way" in until(lambda: small.making and small.making.fault)


def test_what_can_not_be_made_is_told(
    tiny: Model, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kept = cache()
    atlases = SessionAtlases("a", kept, 10**8)
    atlases.make(Gate(tiny), tiny.digest, [("words.png", b"words")])
    fault = until(lambda: atlases.making and atlases.making.fault)
    assert "None of the 1 images can be used" in fault
    assert kept.used == 0

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(GrowingAtlas, "go_on", fail)
    atlases.make(Gate(tiny), tiny.digest, files())
    fault = until(lambda: atlases.making and atlases.making.fault)
    assert "on our side" in fault
    assert "ZeroDivisionError" in caplog.text


def test_no_more_images_than_the_most(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_atlases, "MOST", 3)
    atlases = SessionAtlases("a", cache(), 10**8)
    assert len(atlases.make(Gate(tiny), tiny.digest, files())) == 3
    assert until(lambda: atlases.atlas(tiny.digest)).counts["images"] == 3
