"""A program that uses a network, wraps it and uses it again goes on as though it had not."""

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
from tests.capturing.test_odd_networks import ODD
from tests.networks import TINY_SIDE, Tiny, random_input, seeded
from tests.plain_hooks import equal_outputs, plain_pass
from tests.random_kinds import KINDS
from tests.random_networks import FEATURES, SIDE, Description, Step, build, with_feature
from tests.test_any_network import NETWORKS, input_of
from tests.unharmed import GlobalHooks, conditions

pytestmark = pytest.mark.filterwarnings("ignore")  # what torch says of old ways is not the question

Build = Callable[[], nn.Module]


def assert_unharmed(
    build: Build, image: Tensor, preprocess: hookviz.Preprocess | None = None
) -> None:
    """Held against a twin that nobody wraps."""
    random_outside.forget()
    own, twin = seeded(build).eval(), seeded(build).eval()
    # what counts outside of itself makes twins differ by themselves
    alike = equal_outputs(drawing_the_same(own, image), drawing_the_same(twin, image))
    before, hooks = conditions(own), GlobalHooks()
    with hooks.registered():
        try:
            model = hookviz.wrap(own, preprocess)
        except hookviz.HookVizError:
            model = None  # a refusal harms nobody either
    after = conditions(own)
    assert [name for name in before if before[name] != after[name]] == []
    assert hooks.fired == 0, str(hooks)
    if model is not None:
        with suppress(hookviz.HookVizError):
            hookviz.capture(model, image)
    again = equal_outputs(drawing_the_same(own, image), drawing_the_same(twin, image))
    assert again or not alike


def drawing_the_same(
    network: nn.Module, image: Tensor, dtype: torch.dtype = torch.float32
) -> object:
    """What a pass puts out, from the same place of every global generator."""
    torch.manual_seed(3)
    random.seed(3)
    np.random.seed(3)
    return plain_pass(network, image, dtype)


@pytest.fixture(autouse=True)
def own_generators() -> Iterator[None]:
    """What a test seeds is nobody else's."""
    states = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        yield
    random.setstate(states[0])
    np.random.set_state(states[1])


@pytest.mark.parametrize("feature", FEATURES)
def test_a_network_with_one_feature(feature: str) -> None:
    description = with_feature(random.Random(1), Description((Step("norm"),)), feature)
    # a step or a row for each cell of 224×224, which is guessed, takes minutes or gigabytes
    large = feature == "Recurrent" or feature in KINDS["tokens and windows"]
    steps = hookviz.Preprocess(resize=SIDE, crop=SIDE) if large else None
    assert_unharmed(lambda: build(description), random_input(1, SIDE), steps)


@pytest.mark.parametrize("kind", [Tiny, *ODD])
def test_an_odd_network(kind: type[nn.Module]) -> None:
    assert_unharmed(kind, random_input(1))


@pytest.mark.parametrize(("build", "shape"), NETWORKS.values(), ids=NETWORKS)
def test_a_network_of_another_shape(build: Build, shape: tuple[int, ...]) -> None:
    assert_unharmed(build, input_of(shape))


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
    assert_unharmed(kind, random_input(1))


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
                assert_unharmed(kind, image)
            except Exception as error:  # noqa: BLE001 - all of them are told together
                harmed[f"{kind.__module__}.{kind.__qualname__}"] = str(error)[:300]
    assert harmed == {}
