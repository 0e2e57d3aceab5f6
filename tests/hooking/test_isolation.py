"""Passes of ours beside a person's own: their hooks, generators, caches and compiled methods."""

import random
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
)

import hookviz
from tests.networks import seeded

IMAGE = torch.linspace(-1, 1, 3 * 12 * 12).reshape(1, 3, 12, 12)
STEPS = hookviz.Preprocess(resize=12, crop=12)

MASKS: dict[tuple[int, ...], Tensor] = {}


class ByModule(nn.Module):
    """A mask kept by its shape in a dictionary of the Python module, as window attention does."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def mask(self, like: Tensor) -> Tensor:
        shape = tuple(like.shape[-2:])
        if shape not in MASKS:
            MASKS[shape] = like.new_ones(shape).tril()
        return MASKS[shape]

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.conv(images)
        return (features * self.mask(features)).mean((2, 3))


class ByClass(ByModule):
    """In one of the class."""

    masks: dict[tuple[int, ...], Tensor] = {}  # noqa: RUF012 - as people write it

    def mask(self, like: Tensor) -> Tensor:
        return self.masks.setdefault(tuple(like.shape[-2:]), torch.ones_like(like[0, 0]).triu())


@lru_cache
def ruler(rows: int, columns: int, device: torch.device) -> Tensor:
    return torch.arange(rows * columns, device=device).reshape(rows, columns) / 9


class Cached(ByModule):
    """Under ``lru_cache``."""

    def mask(self, like: Tensor) -> Tensor:
        return ruler(*like.shape[-2:], like.device)


class HandsMemoryToC(ByModule):
    """What is on the meta device has none, and a C library ends the process."""

    def mask(self, like: Tensor) -> Tensor:
        assert like.data_ptr() != 0
        return torch.ones(like.shape[-2:])


class Draws(ByModule):
    """Noise from all three generators of the process."""

    def mask(self, like: Tensor) -> Tensor:
        drawn = random.random() + np.random.rand()
        return torch.rand(like.shape[-2:]) + drawn


def left(network: ByModule) -> list[Any]:
    """What is kept outside of the network, by identity, and the generators."""
    caches = [dict(MASKS), dict(ByClass.masks), ruler.cache_info().currsize]
    numbers = [torch.get_rng_state().tolist(), random.getstate(), str(np.random.get_state())]
    flags = [(part.training, *map(id, part.parameters())) for part in network.modules()]
    return [caches, numbers, flags, [parameter.requires_grad for parameter in network.parameters()]]


@pytest.mark.parametrize("build", [ByModule, ByClass, Cached, HandsMemoryToC, Draws])
def test_nothing_outside_of_the_network_changes(build: type[ByModule]) -> None:
    network = seeded(build).eval()
    assert isinstance(network, ByModule)
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)
    expected = network(IMAGE)
    for cache in (MASKS, ByClass.masks):
        cache.clear()
    ruler.cache_clear()
    before = left(network)
    for steps in (STEPS, None):
        model = hookviz.wrap(network, steps)
        hookviz.capture(model, IMAGE)
        hookviz.run_lens("saliency", model, IMAGE, layer="conv")
        assert left(network) == before
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)
    assert torch.equal(network(IMAGE), expected)


def test_what_was_kept_outside_before_is_still_there() -> None:
    kept = torch.zeros(10, 10)
    MASKS[10, 10] = kept
    network = seeded(ByModule)
    model = hookviz.wrap(network, STEPS)
    hookviz.capture(model, torch.zeros(1, 3, 14, 14))  # of another shape
    assert list(MASKS) == [(10, 10)]
    assert MASKS[10, 10] is kept
    MASKS.clear()


def known() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())


REGISTER: dict[str, Callable[[Any], Any]] = {
    "forward": register_module_forward_hook,
    "before": register_module_forward_pre_hook,
    "backward": register_module_full_backward_hook,
}


@pytest.mark.parametrize("register", REGISTER.values(), ids=REGISTER)
def test_global_hooks_of_a_person_see_their_passes_and_none_of_ours(
    register: Callable[[Any], Any],
) -> None:
    seen: list[str] = []
    handle = register(lambda module, *_: seen.append(type(module).__name__))
    try:
        for network in (seeded(ByModule), seeded(known)):
            model = hookviz.wrap(network)
            hookviz.list_layers(model, kind="all")
            hookviz.capture(model, IMAGE)
            hookviz.run_lens("saliency", model, IMAGE)
            assert seen == []
            network(IMAGE.clone().requires_grad_()).sum().backward()
            assert seen
            seen.clear()
    finally:
        handle.remove()


class Compiled(nn.Module):
    """A method that was compiled, which calls a layer twice."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 1)
        self.conv2 = nn.Conv2d(3, 3, 1)

    @torch.compile(backend="eager")
    def block(self, values: Tensor) -> Tensor:
        found: Tensor = self.conv2(self.conv2(self.conv(values)).relu())
        return found

    def forward(self, images: Tensor) -> Tensor:
        found: Tensor = self.block(images)
        return found


def test_a_compiled_method_is_seen_by_each_capture_as_it_runs() -> None:
    network = seeded(Compiled).eval()
    with torch.no_grad():
        first = network.conv(IMAGE)
        second = network.conv2(first)
        third = network.conv2(second.relu())
    model = hookviz.wrap(network, STEPS)
    for _ in range(2):
        assert torch.equal(hookviz.capture(model, IMAGE, "conv")["conv"].values, first[0])
        cap = hookviz.capture(model, IMAGE, "conv2")
        assert torch.equal(cap["conv2"].values, second[0])
        assert torch.equal(cap["conv2#1"].values, third[0])
