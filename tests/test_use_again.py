"""What a look at a network sets is as before, for every network that the tests have."""

import importlib
import inspect
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from tests import random_outside
from tests.networks import TINY_SIDE, random_input, seeded
from tests.plain_hooks import plain_pass
from tests.test_any_network import input_of
from tests.unharmed import conditions

pytestmark = pytest.mark.filterwarnings("ignore")  # what torch says of old ways is not the question


def assert_taken_back(build: Callable[[], nn.Module], image: Tensor) -> None:
    """What HookViz sets is as before: hooks, flags, buffers, generators, settings of torch's."""
    random_outside.forget()
    own = seeded(build).train()
    before = conditions(own)
    model = hookviz.wrap(own)
    with suppress(hookviz.HookVizError):
        hookviz.capture(model, image)
    after = conditions(own)
    assert [name for name in before if before[name] != after[name]] == []


class Draws(nn.Module):
    """From every global generator, in each pass."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, images: Tensor) -> Tensor:
        drawn = torch.rand(()) + random.random() + np.random.rand()
        output: Tensor = self.conv(images + drawn)
        return output.mean((2, 3))


class DrawsByValue(Draws):
    """Takes real numbers to run."""

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images) if images.sum().item() < 1e6 else images


@pytest.mark.parametrize("kind", [Draws, DrawsByValue])
def test_a_network_that_draws(kind: type[nn.Module]) -> None:
    assert_taken_back(kind, random_input(1))


_ROOMS = (
    "atlas",
    "capturing",
    "comparing",
    "explaining",
    "hooking",
    "lenses",
    "models",
    "synthesis",
    "training",
)
_SHAPES = ((3, TINY_SIDE, TINY_SIDE), (1, 28, 28), (3, 64, 64), (2, 64), (1, 6, 8, 10))


def _networks_of_tests() -> Iterator[tuple[type[nn.Module], Tensor]]:
    """Every class of a network in the packages' tests that can be made and run without a word."""
    for room in _ROOMS:
        for path in sorted((Path(__file__).parent / room).rglob("test_*.py")):
            name = ".".join(path.relative_to(Path(__file__).parents[1]).with_suffix("").parts)
            for kind in list(vars(importlib.import_module(name)).values()):
                if (
                    inspect.isclass(kind)
                    and issubclass(kind, nn.Module)
                    and kind.__module__ == name
                ):
                    image = _image_of(kind)
                    if image is not None:
                        yield kind, image


def _image_of(kind: type[nn.Module]) -> Tensor | None:
    for shape in _SHAPES:
        try:
            network, image = seeded(kind).eval(), input_of(shape)
            plain_pass(network, image, torch.float32)
        except Exception:  # noqa: BLE001, S112 - it takes another one, or more
            continue
        return image
    return None


@pytest.mark.sweep("by day every feature and the odd networks: above, and tests/hooking")
def test_every_network_of_the_tests() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        networks = list(_networks_of_tests())
        assert len(networks) > 80
        harmed = {}
        for kind, image in networks:
            try:
                assert_taken_back(kind, image)
            except Exception as error:  # noqa: BLE001 - all of them are told together
                harmed[f"{kind.__module__}.{kind.__qualname__}"] = str(error)[:300]
    assert harmed == {}
