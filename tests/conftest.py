"""Tiny networks and pictures that tests share."""

import asyncio
import io
import os
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import hookviz
from hookviz.hooking import replicas
from hookviz.types import Model, Preprocess

if "PYTEST_XDIST_WORKER" in os.environ:
    # Each worker has a core to itself: more threads would wait for each other. The servers and
    # programs that it starts follow, so that their numbers are the same to the last bit.
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what may take longest, or a worker would sit idle while the other ends it."""
    items.sort(key=lambda item: _most_seconds(item) <= _USUAL_SECONDS)


_USUAL_SECONDS = 300  # as in pyproject.toml


def _most_seconds(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else _USUAL_SECONDS


TINY_SIDE = 16
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
        found = self.relu(self.conv2(self.relu(self.conv1(images))))
        scores: Tensor = self.head(found.mean((2, 3)))
        return scores


def seeded(build: Callable[[], Network]) -> Network:
    """A network whose random weights are the same on every run."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        return build()


def as_model(module: nn.Module) -> Model:
    """A tiny network as a model that takes 16×16 RGB images."""
    return hookviz.wrap(module, Preprocess(resize=TINY_SIDE, crop=TINY_SIDE))


@pytest.fixture
def tiny() -> Model:
    return as_model(seeded(Tiny))


@pytest.fixture(scope="session")
def of_catalog(request: pytest.FixtureRequest) -> Model:
    """Each network of the catalog in turn, see `tests.every_network`."""
    name, weights = request.param
    return hookviz.load_model(name, weights)


@pytest.fixture
def noise() -> Tensor:
    return random_input(0)


def random_input(seed: int, side: int = TINY_SIDE) -> Tensor:
    """A (1, 3, side, side) input of standard normal values."""
    return torch.randn(1, 3, side, side, generator=torch.Generator().manual_seed(seed))


def picture(seed: int = 0, width: int = 40, height: int = 30) -> Image.Image:
    """A smooth random RGB picture."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (5, 7, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


def encoded(image: Image.Image, format: str = "PNG", **options: Any) -> bytes:  # noqa: A002
    """The bytes of an image file."""
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


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
        hook_count(replica.network) for replica in replicas._idle.get(model.network, [])
    )


Result = TypeVar("Result")


def in_a_loop_of_its_own(work: Coroutine[Any, Any, Result]) -> Result:
    """What a coroutine gives, run in another thread: the browser's tests leave a loop in this."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
