"""Tiny networks that tests share, and what hooks are on one."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor, nn

import hookviz
from hookviz.hooking import network_state
from hookviz.hooking.network_state import share
from hookviz.models.derived_models import copied_network
from hookviz.outputs.answer import Output
from hookviz.types import Model, Preprocess

TINY_SIDE = 16
CLASSES = Output("logits", is_said=False)
"""What their output is, as if they were of the catalog."""
Network = TypeVar("Network", bound=nn.Module)


class Tiny(nn.Module):
    """Two conv layers with one shared ReLU that works in place, and five classes."""

    conv1: nn.Conv2d
    relu: nn.ReLU
    conv2: nn.Conv2d
    head: nn.Linear

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(4, 6, 3, stride=2)
        self.head = nn.Linear(6, 5)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.relu(self.conv2(self.relu(self.conv1(images))))
        scores: Tensor = self.head(maps.mean((2, 3)))
        return scores


def seeded(build: Callable[[], Network]) -> Network:
    """A network whose random weights are the same on every run."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        return build()


def as_model(module: nn.Module) -> Model:
    """A tiny network as a model that takes 16×16 RGB images, and puts out logits."""
    return hookviz.wrap(module, Preprocess(resize=TINY_SIDE, crop=TINY_SIDE), output=CLASSES)


def as_shared(module: nn.Module) -> Model:
    """A tiny network as one of the catalog, whose passes run on replicas."""
    model = as_model(share(module.eval()))
    return replace(model, fixed_digest=model.digest)


def plain_network(model: Model) -> nn.Module:
    """A copy of the network that a model computes with, frozen and in its mode, for plain calls."""
    return copied_network(model).requires_grad_(requires_grad=False)


def random_input(seed: int, side: int = TINY_SIDE) -> Tensor:
    """A (1, 3, side, side) input of standard normal values."""
    return torch.randn(1, 3, side, side, generator=torch.Generator().manual_seed(seed))


def hook_count(network: nn.Module) -> int:
    """Forward, pre-forward and backward hooks on all modules of a network."""
    return sum(
        len(module._forward_hooks)
        + len(module._forward_pre_hooks)
        + len(module._backward_hooks)
        + len(module._backward_pre_hooks)
        for module in network.modules()
    )


def all_hooks(model: Model) -> int:
    """Hooks on the shared network and on every replica at rest."""
    return hook_count(model.network) + sum(
        hook_count(replica.network) for replica in network_state._idle.get(model.network, [])
    )
