"""Dictionaries and caches outside of a network, which looking at it fills as calls of it do."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from tests.networks import random_input, seeded
from tests.plain_hooks import equal, plain_pass


class Building(dict[str, Any]):
    """Builds an instance of the class that it holds at every look-up, as transformers does."""

    def __getitem__(self, key: str) -> Any:
        LOG.append(f"build {key}")
        return super().__getitem__(key)()


class Filling(dict[str, Any]):
    """Keeps an instance of what is asked for first."""

    def __missing__(self, key: str) -> Any:
        LOG.append(f"fill {key}")
        self[key] = getattr(nn, key)()
        return self[key]


class Counting(dict[str, Any]):
    """Notes who walks over it, and gives instances in place of what it holds."""

    def __getitem__(self, key: str) -> Any:
        LOG.append(f"get {key}")
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[str]:
        LOG.append("iterate")
        for key in list(super().keys()):
            self[key] = nn.Tanh()
            yield key

    def items(self) -> Any:
        LOG.append("items")
        return [(key, self[key]) for key in self]

    def __len__(self) -> int:
        LOG.append("length")
        return super().__len__()


LOG: list[str] = []
BUILDING = Building(ReLU=nn.ReLU, Sigmoid=nn.Sigmoid)
FILLING = Filling(Sigmoid=nn.Sigmoid())
COUNTING = Counting(ReLU=nn.ReLU(), Sigmoid=nn.Sigmoid())


@lru_cache(maxsize=4)
def ramp(side: int) -> Tensor:
    LOG.append(f"ramp of {side}")
    return torch.linspace(0, 1, side)


class Registered(nn.Module):
    """Conv layer and what its code finds outside."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.last = nn.Conv2d(4, 4, 1)

    def forward(self, images: Tensor) -> Tensor:
        LOG.append("pass")
        maps: Tensor = self.last(self.activate(self.conv(images)))
        return maps

    def activate(self, maps: Tensor) -> Tensor:
        raise NotImplementedError


class Builds(Registered):
    def activate(self, maps: Tensor) -> Tensor:
        activated: Tensor = BUILDING["ReLU"](maps)
        return activated


class Fills(Registered):
    def activate(self, maps: Tensor) -> Tensor:
        activated: Tensor = FILLING["ReLU"](maps)
        return activated


class Counts(Registered):
    def activate(self, maps: Tensor) -> Tensor:
        activated: Tensor = COUNTING["ReLU"](maps)
        return activated


class Caches(Registered):
    def activate(self, maps: Tensor) -> Tensor:
        return maps * ramp(maps.shape[-1])


def contents() -> list[tuple[str, str, int]]:
    """Every entry by identity, read without a method of the dictionaries' own."""
    registries = {"building": BUILDING, "filling": FILLING, "counting": COUNTING}
    return [
        (name, key, id(it)) for name, each in registries.items() for key, it in dict.items(each)
    ]


def keys() -> list[tuple[str, str]]:
    return [(name, key) for name, key, _ in contents()]


def forget() -> None:
    """Go back to what the module holds when it is imported."""
    dict.pop(FILLING, "ReLU", None)
    ramp.cache_clear()
    LOG.clear()


@pytest.fixture(autouse=True)
def _as_imported() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.mark.parametrize("kind", [Builds, Fills, Counts, Caches])
def test_capture_leaves_what_as_many_calls_leave(kind: Callable[[], Registered]) -> None:
    own, twin, image = seeded(kind).eval(), seeded(kind).eval(), random_input(0)
    before = contents()
    model = hookviz.wrap(own)
    assert (contents(), LOG) == (before, [])
    cap = hookviz.capture(model, image, ["conv", "last"])
    after, left = contents(), (keys(), ramp.cache_info(), LOG.copy())
    assert set(before) <= set(after)
    forget()
    maps = [plain_pass(twin, image) for _ in range(left[-1].count("pass"))]
    assert left == (keys(), ramp.cache_info(), LOG)
    assert equal(cap["last"].raw, maps[-1][0])


@pytest.mark.parametrize("kind", [Builds, Fills, Counts, Caches])
def test_looking_again_keeps_the_same_objects(kind: Callable[[], Registered]) -> None:
    own, image = seeded(kind).eval(), random_input(0)
    plain_pass(own, image)
    before, cached = contents(), ramp(image.shape[-1])
    model = hookviz.wrap(own)
    hookviz.list_layers(model)
    for number in range(2):
        hookviz.capture(model, image + number)
    assert contents() == before
    assert ramp(image.shape[-1]) is cached
