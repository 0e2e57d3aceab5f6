import time

import pytest
import torch

from hookviz.serving import capacity, turns
from hookviz.serving.time_limit import TooLongError
from hookviz.serving.watched_run import WatchedRun
from hookviz.settings import settings


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


def test_the_time_limit_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKVIZ_RUN_SECONDS", "1")
    settings.cache_clear()
    watch = Watch()
    try:
        with turns.turn("me", "A run") as slot:
            run = WatchedRun(slot, watch.check, watch.shares.append, watch.on_position)
            time.sleep(1.1)
            with pytest.raises(TooLongError):
                run.limit.within()(0.5)
    finally:
        settings.cache_clear()
