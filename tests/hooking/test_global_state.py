import threading
from collections import deque
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.hooking.global_state import global_state_restored

KEPT: dict[str, Any] = {"a": [1]}
ORDER = deque([1, 2])
SEEN = {1}
NOT_REFERRED_TO = [1]


def helper(name: str) -> None:
    KEPT[name] = torch.ones(1)
    KEPT["a"].append(2)
    ORDER.rotate()
    SEEN.add(len(SEEN) + 1)


@lru_cache
def made(number: int) -> Tensor:
    return torch.full((1,), float(number))


class Keeps(nn.Module):
    count = 0

    def forward(self, x: Tensor) -> Tensor:
        helper("b")
        made(len(x))
        type(self).count += 1
        type(self).new = 1  # type: ignore[attr-defined]
        return x


def outside() -> str:
    state = (KEPT, ORDER, SEEN, made.cache_info().currsize, Keeps.count, hasattr(Keeps, "new"))
    return str(state)


def test_what_the_code_refers_to_is_put_back_and_nothing_else() -> None:
    before = outside()
    network = Keeps()
    with global_state_restored(network):
        network(torch.ones(2))
        NOT_REFERRED_TO.append(2)
        assert outside() != before
    assert outside() == before
    assert NOT_REFERRED_TO == [1, 2]
    NOT_REFERRED_TO.pop()


def test_of_blocks_that_overlap_the_last_one_puts_back() -> None:
    before = outside()
    network = Keeps()
    begun, ended = threading.Event(), threading.Event()

    def other() -> None:
        with global_state_restored(network):
            network(torch.ones(3))
            begun.set()
            ended.wait(10)

    thread = threading.Thread(target=other)
    with global_state_restored(network):
        network(torch.ones(2))
        thread.start()
        assert begun.wait(10)
    assert outside() != before  # the other one is still at it
    ended.set()
    thread.join()
    assert outside() == before


def test_known_code_keeps_nothing() -> None:
    with global_state_restored(nn.Sequential(nn.ReLU())):
        KEPT["c"] = 1
    assert KEPT.pop("c") == 1
