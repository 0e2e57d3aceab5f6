from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from hookviz.models.digest import network_digest, weights_digest
from tests.conftest import Tiny, seeded


def test_digests_tell_weights_apart() -> None:
    networks = [seeded(Tiny), seeded(Tiny)]
    one, same = map(weights_digest, networks)
    with torch.no_grad():
        networks[1].head.bias[0] += 1e-6
    assert one == same != weights_digest(networks[1])


class HoldsLayers(nn.Module):
    """A conv layer that a function reaches before the network's own order does."""

    def __init__(self, stride: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride)
        self.unknown = [nn.MaxPool2d(stride)]
        self.act = lambda x: F.relu(self.conv(x))


def test_options_of_layers_that_functions_reach_count() -> None:
    digests = [network_digest(seeded(partial(HoldsLayers, stride))) for stride in (1, 2, 1)]
    assert digests[0] == digests[2] != digests[1]


def test_options_of_layers_that_no_network_knows_count() -> None:
    networks = [nn.Sequential(), nn.Sequential(), nn.Sequential()]
    for network, size in zip(networks, (1, 2, 1), strict=True):
        network.hidden = [nn.MaxPool2d(size)]  # type: ignore[assignment]
    digests = [network_digest(network) for network in networks]
    assert digests[0] == digests[2] != digests[1]


def test_whose_method_it_is_counts() -> None:
    def holding(kind: type[nn.Module]) -> nn.Module:
        network = nn.Sequential(nn.ReLU(), nn.Tanh())
        network.act = next(part for part in network if isinstance(part, kind)).forward  # type: ignore[assignment]
        return network

    assert network_digest(holding(nn.ReLU)) != network_digest(holding(nn.Tanh))


def test_recurrent_layers_have_a_digest() -> None:
    assert len({network_digest(seeded(lambda: nn.LSTM(2, 3))) for _ in range(2)}) == 1
