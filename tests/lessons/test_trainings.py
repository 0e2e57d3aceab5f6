"""A training is one for all who watch it: it goes on where anybody left it."""

import threading

import pytest

from hookviz.lessons import trainings
from hookviz.lessons.small_network import EVERY
from hookviz.lessons.trainings import computing, training
from hookviz.types import ignore


def test_it_is_the_same_one_for_everybody_and_the_oldest_goes() -> None:
    first = training(0.5, 101)
    assert training(0.5, 101) is first
    assert training(0.5, 102) is not first
    for seed in range(200, 200 + trainings._MOST):
        training(0.5, seed)
    assert training(0.5, 101) is not first


def test_it_goes_on_a_little_at_a_time_and_tells_how_far_it_is() -> None:
    shared = training(0.03, 111)
    told: list[float] = []
    while len(shared.frames) < 3:
        shared.go_on(told.append)
    assert told == sorted(told)
    assert 0 < shared.share < 1
    assert not shared.is_over
    assert shared not in trainings.finished()
    assert shared.frames[2].step == 2 * EVERY


def test_what_progress_raises_ends_it_and_leaves_what_there_is() -> None:
    shared = training(0.03, 112)
    while not shared.frames:
        shared.go_on(ignore)
    before = len(shared.frames)

    def stop(_share: float) -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        shared.go_on(stop)
    assert len(shared.frames) == before


def test_one_computes_at_a_time() -> None:
    seen: list[bool] = []

    def other() -> None:
        with computing() as mine:
            seen.append(mine)

    with computing() as mine:
        assert mine
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert seen == [False]
    with computing() as mine:
        assert mine
