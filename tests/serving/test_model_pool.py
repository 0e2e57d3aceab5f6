import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from torch import nn

import hookviz
from hookviz.serving.model_pool import ModelPool, model_bytes
from hookviz.types import Model

SIZE = 4_000  # bytes of a model of a thousand parameters


def sized(count: int = 1000) -> Model:
    return hookviz.wrap(nn.Sequential(nn.Linear(count, 1, bias=False)))


def never() -> Model:
    return pytest.fail("it must not be loaded")


def test_a_model_is_loaded_once_and_shared() -> None:
    pool = ModelPool(10 * SIZE)
    with pool.use("a", "A", SIZE, sized) as first, pool.use("a", "A", SIZE, never) as second:
        assert first is second
    with pool.use("a", "A", SIZE, never) as third:
        assert third is first
    assert pool.used == model_bytes(first) == SIZE


def test_the_least_recently_used_goes_first() -> None:
    pool = ModelPool(2 * SIZE)
    for key in ("a", "b", "a", "c"):
        with pool.use(key, key, SIZE, sized):
            assert pool.used <= pool.limit
    with pool.use("a", "a", SIZE, never), pool.use("c", "c", SIZE, never):
        pass
    loaded: list[str] = []
    with pool.use("b", "b", SIZE, lambda: loaded.append("b") or sized()):  # type: ignore[func-returns-value]
        assert loaded == ["b"]


def test_of_those_that_rest_as_many_go_as_asked_for() -> None:
    pool = ModelPool(10 * SIZE)
    for key in ("a", "b", "c", "d"):
        with pool.use(key, key, SIZE, sized):
            pass
    with pool.use("a", "a", SIZE, never):
        assert pool.unused == 3 * SIZE
        assert pool.evict_unused(SIZE + 1) == 2 * SIZE
    with pool.use("d", "d", SIZE, never):
        assert pool.evict_unused() == SIZE
    assert pool.used == SIZE


def test_what_two_have_in_common_counts_once_and_goes_with_the_last() -> None:
    pool = ModelPool(2 * SIZE + SIZE // 2)
    with pool.use("whole", "Whole", SIZE, sized) as whole:
        network = nn.Sequential(whole.network[0], nn.Linear(100, 1, bias=False))  # type: ignore[index]
        with pool.use("more", "More", 400, lambda: replace(whole, network=network)) as more:
            assert pool.used == SIZE + 400 < model_bytes(whole) + model_bytes(more)
    with pool.use("b", "B", SIZE, sized):
        assert pool.used == 2 * SIZE + 400  # there was room for all
        with pool.use("c", "C", SIZE, sized):
            assert pool.used == 2 * SIZE  # "whole" alone would have freed nothing


def test_one_in_use_is_never_thrown_out() -> None:
    pool = ModelPool(2 * SIZE, patience=0.05)
    with pool.use("a", "A", SIZE, sized):
        for key in ("b", "c", "d"):
            with pool.use(key, key, SIZE, sized):
                pass
        with pool.use("a", "A", SIZE, never):
            pass


def test_what_can_never_fit_is_refused_before_it_is_loaded() -> None:
    pool = ModelPool(3 * 1024 * 1024)
    with (
        pytest.raises(hookviz.ModelError, match=r"VGG takes 500 MB, more than the 3 MB.*MODELS_MB"),
        pool.use("vgg", "VGG", 500 * 1024 * 1024, never),
    ):
        pass
    assert pool.used == 0


def test_without_room_it_waits_for_others_and_then_gives_up() -> None:
    pool = ModelPool(SIZE, patience=0.05)
    with (
        pool.use("a", "A", SIZE, sized),
        pytest.raises(hookviz.ModelError, match="no room for B"),
        pool.use("b", "B", SIZE, never),
    ):
        pass
    patient = ModelPool(SIZE, patience=30)
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with patient.use("a", "A", SIZE, sized):
            entered.set()
            leave.wait(20)

    with ThreadPoolExecutor() as threads:
        held = threads.submit(hold)
        assert entered.wait(20)
        waiting = threads.submit(lambda: patient.use("b", "B", SIZE, sized).__enter__())
        assert not waiting.done()
        leave.set()
        held.result(20)
        assert isinstance(waiting.result(20), Model)


def test_those_who_arrive_together_share_one_loading() -> None:
    pool = ModelPool(10 * SIZE)
    barrier = threading.Barrier(8)
    loads: list[int] = []

    def slow() -> Model:
        loads.append(1)
        threading.Event().wait(0.1)
        return sized()

    def ask(_: int) -> Model:
        barrier.wait()
        with pool.use("a", "A", SIZE, slow) as model:
            return model

    with ThreadPoolExecutor(8) as threads:
        models = set(map(id, threads.map(ask, range(8))))
    assert (len(models), len(loads)) == (1, 1)


def test_a_failed_loading_leaves_nothing_and_may_be_tried_again() -> None:
    pool = ModelPool(SIZE)

    def fail() -> Model:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), pool.use("a", "A", SIZE, fail):
        pass
    assert pool.used == 0
    with pool.use("a", "A", SIZE, sized) as model:
        assert model_bytes(model) == SIZE
