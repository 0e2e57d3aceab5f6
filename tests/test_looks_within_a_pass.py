"""A look at a network in the midst of its pass is no part of that pass."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hookviz
from tests.networks import Tiny, as_model, random_input, seeded


class Asks(nn.Module):
    """Lists its own layers and captures itself within its pass; a buffer counts passes."""

    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.other = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 5, 3)
        self.register_buffer("count", torch.zeros(()))
        self.asks = True

    def forward(self, images: Tensor) -> Tensor:
        self.count += 1
        values = F.relu(self.conv(images))
        if self.asks:
            self.asks = False
            hookviz.list_layers(self, kind="all", input_shape=(3, 16, 16))
            hookviz.capture(self, random_input(4))
            self.asks = True
        scores: Tensor = self.other(values).mean((2, 3)) * self.count
        return scores


def test_a_network_may_look_at_itself_within_a_pass() -> None:
    asking, plain = (seeded(Asks).eval() for _ in range(2))
    plain.asks = False
    names, caps = [], []
    for network in (asking, plain):
        model = as_model(network)
        names.append([layer.name for layer in hookviz.list_layers(model, kind="all")])
        caps.append(hookviz.capture(model, random_input(1), ["conv", "other"]))
    assert names[0] == names[1] == ["conv", "relu() after conv", "other"]
    ours, theirs = caps
    assert list(ours) == list(theirs) == ["conv", "other"]
    assert all(torch.equal(ours[name].raw, theirs[name].raw) for name in ours)
    assert ours.logits is not None
    assert theirs.logits is not None
    assert torch.equal(ours.logits, theirs.logits)
    assert asking.count == 0


@pytest.mark.parametrize("look", [hookviz.observe, hookviz.breakpoint_at])
def test_a_hook_may_look_at_its_network(look: Any) -> None:
    network = seeded(Tiny).eval()
    seen: list[list[str]] = []

    def see(_call: hookviz.Call) -> None:
        listed = [layer.name for layer in hookviz.list_layers(network, input_shape=(3, 16, 16))]
        assert list(hookviz.capture(network, random_input(2))) == listed
        seen.append(listed)

    with look(network, "relu", see):
        network(random_input(1))
    assert seen == [["conv1", "conv2"]] * 2


def test_a_network_that_asks_without_end_is_refused() -> None:
    network = seeded(Tiny).eval()

    def ask(*_: Any) -> None:
        hookviz.list_layers(network, input_shape=(3, 16, 16))

    network.conv1.register_forward_hook(ask)
    with pytest.raises(hookviz.HookVizError, match="recursion"):
        hookviz.capture(network, random_input(1))
