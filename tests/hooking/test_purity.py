import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hookviz.hooking.purity import Purity, is_pure, record_purity


class _Slots:
    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


def _averages() -> tuple[Tensor, Tensor]:
    return torch.zeros(3), torch.ones(3)


class Acts(nn.Module):
    """Does something with its input."""

    def __init__(self, act: Callable[["Acts", Tensor], Any]) -> None:
        super().__init__()
        self.act = act
        self.register_buffer("count", torch.zeros(()))
        self.memory: dict[str, list[int]] = {"calls": []}
        self.number = 0
        self.dice = random.Random(0)
        self.torch_dice = torch.Generator()
        self.slots = _Slots()
        self.raw = self.count.numpy().reshape(1)

    count: Tensor

    def forward(self, images: Tensor) -> Tensor:
        self.act(self, images)
        return images


def computed_only(act: Callable[[Acts, Tensor], Any]) -> bool:
    network = nn.Sequential(Acts(act))
    images = torch.rand(1, 3, 4, 4) + 1
    purity = Purity(network)
    with purity:
        network(images)
    return purity.was_pure


@pytest.mark.parametrize(
    "act",
    [
        lambda _, x: x.relu().view(-1).float().bool().int(),
        lambda _, x: x.clone().relu_().add_(1),
        lambda _, x: F.batch_norm(x, torch.zeros(3), torch.ones(3)),
        lambda _, x: F.batch_norm(x, None, None, training=True),
        lambda _, x: torch.zeros(x.shape[1:]).sum(),
        lambda _, x: len(x) + x.dim() + x.shape.numel(),
    ],
)
def test_computing_is_no_more_than_that(act: Callable[[Acts, Tensor], Any]) -> None:
    assert computed_only(act)


@pytest.mark.parametrize(
    "act",
    [
        lambda _, x: x.data,
        lambda _, x: x.numpy(),
        lambda _, x: x.mean().item(),
        lambda _, x: bool(x.mean() > 0),
        lambda _, x: float(x.mean()),
        lambda _, x: x.tolist(),
        lambda _, x: x.untyped_storage(),
        lambda _, x: x.nonzero(),
        lambda self, _: self.count.add_(1),
        lambda self, _: setattr(self, "count", self.count + 1),
        lambda self, _: setattr(self, "number", self.number + 1),
        lambda self, _: setattr(self, "new", 1),
        lambda self, _: self.memory["calls"].append(1),
        lambda self, x: F.batch_norm(x, torch.zeros(3), torch.ones(3), training=True),
        lambda self, _: self.register_buffer("other", torch.ones(1)),
        lambda self, x: torch.native_batch_norm(x, None, None, *_averages(), True, 0.1, 1e-5),
        lambda self, _: self.dice.random(),
        lambda self, _: self.torch_dice.seed(),
        lambda self, _: setattr(self.slots, "count", self.slots.count + 1),
        lambda self, _: self.raw.fill(5),
        lambda _, x: torch.rand(3),
        lambda *_: random.random(),
        lambda *_: np.random.rand(),
    ],
)
def test_whatever_is_more_is_seen(act: Callable[[Acts, Tensor], Any]) -> None:
    assert not computed_only(act)


def test_what_can_not_be_told_counts_as_more() -> None:
    network = nn.Sequential(nn.ReLU())
    network.waiting = (number for number in range(3))  # type: ignore[assignment]
    with Purity(network) as purity:
        pass
    assert not purity.was_pure


def test_a_network_is_trusted_once_it_was_watched_and_never_again_after_it_did_more() -> None:
    network = nn.Sequential(nn.ReLU())
    assert not is_pure(network)
    record_purity(network, is_pure=True)
    assert is_pure(network)
    record_purity(network, is_pure=False)
    record_purity(network, is_pure=True)
    assert not is_pure(network)


def test_a_network_that_holds_a_lock_can_be_watched() -> None:
    network = nn.Sequential(nn.ReLU())
    network.lock = threading.Lock()  # type: ignore[assignment]
    with Purity(network) as purity:
        network(torch.ones(1))
    assert purity.was_pure in (True, False)
