"""Copies that are none are refused, with what differs and where."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from tests.networks import seeded

STEPS = hookviz.Preprocess(resize=12, crop=12)

REGISTRY: dict[int, float] = {}


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.scale: Any = nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        found: Tensor = self.scale(self.conv(images))
        return found


class _Times(nn.Module):
    """Knows its number by its identity, which a copy has not."""

    def __init__(self) -> None:
        super().__init__()
        REGISTRY[id(self)] = 2.0

    def forward(self, values: Tensor) -> Tensor:
        return values * REGISTRY.get(id(self), 1.0)


class ByIdentity(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.scale = _Times()


class _Holder:
    """No module, with one inside, that copies share."""

    def __init__(self) -> None:
        self.part = nn.Conv2d(4, 4, 1)

    def __deepcopy__(self, _memo: dict[int, Any]) -> "_Holder":
        return self


class _Hidden(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.holder = _Holder()

    def forward(self, values: Tensor) -> Tensor:
        found: Tensor = self.holder.part(values)
        return found


def test_outputs_that_differ_are_told_by_the_layer() -> None:
    with pytest.raises(hookviz.ModelError, match=r"ByIdentity can't be copied.*scale of the copy"):
        hookviz.wrap(seeded(ByIdentity).eval(), STEPS)


@pytest.mark.parametrize("training", [False, True])
def test_a_copy_that_is_one_is_taken_and_the_network_runs_once_at_most(training: bool) -> None:
    network = seeded(Plain).train(training)
    passes: list[int] = []
    network.conv.register_forward_hook(lambda *_: passes.append(1))  # a person's, which is silent
    hookviz.wrap(network, STEPS)
    assert passes == []
    network(torch.zeros(1, 3, 12, 12))
    assert passes == [1]


class Counts(Plain):
    """A pass leaves something in it, so the person's own is not run."""

    def __init__(self) -> None:
        super().__init__()
        self.passes = 0

    def forward(self, images: Tensor) -> Tensor:
        self.passes += 1
        return super().forward(images) + self.passes


def test_a_network_that_a_pass_changes_is_not_run() -> None:
    network = seeded(Counts).eval()
    hookviz.wrap(network, STEPS)
    assert network.passes == 0
