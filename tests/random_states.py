"""Blocks with state that copies lose or share: hidden counters, generators, views of one memory."""

import itertools
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tests.random_blocks import block
from tests.random_operations import WIDTH


class _Counter:
    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls = 0


@block
class CountsInSlots(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 1)
        self.counter = _Counter()

    def forward(self, x: Tensor) -> Any:
        self.counter.calls += 1
        return self.conv(x) * (1 + 0.1 * self.counter.calls)


@block
class HoldsAGenerator(nn.Module):
    """Draws from a generator of its own, which is at another place after every pass."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 1)
        kinds: list[Any] = [Random(7), np.random.default_rng(7), itertools.count(1)]
        self.source = kinds[number % 3]

    def forward(self, x: Tensor) -> Any:
        source = self.source
        drawn = next(source) if isinstance(source, itertools.count) else source.random()
        return self.conv(x) * (1 + 0.25 * drawn)


@block
class NormalisesPastNames(nn.Module):
    """Moves running averages by torch's own function, which takes them by position."""

    average: Tensor
    spread: Tensor

    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 1)
        self.register_buffer("average", torch.zeros(WIDTH))
        self.register_buffer("spread", torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        if x.shape[2] * x.shape[3] > 1:
            averages = (self.average, self.spread)
            torch.native_batch_norm(x, None, None, *averages, True, 0.5, 1e-5)
        return x - self.average[:, None, None].to(x.dtype)


@block
class TracksItsInput(nn.Module):
    """A running average that moves in eval mode too, as in test-time adaptation."""

    running: Tensor

    def __init__(self, number: int) -> None:
        super().__init__()
        self.register_buffer("running", torch.zeros(WIDTH))
        self.replaces = number % 2 == 0

    def forward(self, x: Tensor) -> Tensor:
        moved = 0.5 * self.running + 0.5 * x.mean((0, 2, 3)).detach()
        if self.replaces:
            self.running = moved
        else:
            self.running.copy_(moved)
        return x - self.running[:, None, None]


@block
class BufferAndItsView(nn.Module):
    table: Tensor
    first: Tensor

    def __init__(self, number: int) -> None:
        super().__init__()
        self.register_buffer("table", torch.linspace(0, 1, 2 * WIDTH))
        self.register_buffer("first", self.table[:WIDTH])
        self.conv = nn.Conv2d(WIDTH, WIDTH, 1)
        self.writes, self.reads = ("first", "table") if number % 2 else ("table", "first")

    def forward(self, x: Tensor) -> Any:
        self.get_buffer(self.writes).add_(0.25)
        return self.conv(x) + self.get_buffer(self.reads)[:WIDTH, None, None]


@block
class WeightAndItsView(nn.Module):
    """One flat memory behind a layer's weights, as optimisers and quantisers keep."""

    flat: Tensor

    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 1)
        self.register_buffer("flat", self.conv.weight.data.view(-1), persistent=number % 2 == 0)

    def forward(self, x: Tensor) -> Any:
        self.flat.mul_(0.75)
        return self.conv(x)


@block
class ViewInAnAttribute(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 1)
        first = self.conv.weight.data[:1]
        self.first: Callable[[], Tensor] | Tensor = (lambda: first) if number % 2 else first

    def forward(self, x: Tensor) -> Any:
        first = self.first if isinstance(self.first, Tensor) else self.first()
        first.clamp_(-0.1, 0.1)
        return self.conv(x)
