import subprocess
import sys
import threading
import types
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hookviz
from hookviz.capturing.cache import Budget
from hookviz.hooking import replicas
from hookviz.models.digest import network_digest
from tests.networks import Tiny, as_model, random_input, seeded

ROOT = Path(__file__).parent.parent.parent


def test_digests_tell_weights_apart() -> None:
    networks = [seeded(Tiny), seeded(Tiny)]
    one, same = map(network_digest, networks)
    with torch.no_grad():
        networks[1].head.bias[0] += 1e-6
    assert one == same != network_digest(networks[1])


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


def conv(**options: Any) -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3, **options), nn.ReLU())


class Applies(nn.Module):
    """A convolution and any function after it."""

    factor = 1.0

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.function = function

    def forward(self, images: Tensor) -> Tensor:
        return self.function(self.conv(images)) * self.factor


class AppliesHalf(Applies):
    factor = 0.5


class Reversed(Applies):
    """The same parts in another order of code."""

    def forward(self, images: Tensor) -> Tensor:
        activation: Tensor = self.conv(self.function(images))
        return activation


FACTOR = 2.0


class OfAGlobal(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, images: Tensor) -> Tensor:
        activation: Tensor = self.conv(images)
        return activation * FACTOR


class OfABuffer(nn.Module):
    scale: Tensor

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.register_buffer("scale", torch.tensor(scale), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        activation: Tensor = self.conv(images)
        return activation * self.scale


class Lists(nn.Module):
    """Its parts are in a list as well, where one is that torch does not know of."""

    def __init__(self, part: nn.Module, scale: float = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.parts = [self.conv, part]
        self._forward_scale = scale

    def forward(self, images: Tensor) -> Tensor:
        for part in self.parts:
            images = part(images)
        return images * self._forward_scale


class HooksItself(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.conv.register_forward_hook(partial(self.scale, factor))

    def scale(self, factor: float, _module: nn.Module, _inputs: Any, output: Tensor) -> Tensor:
        return output * factor

    def forward(self, images: Tensor) -> Tensor:
        activation: Tensor = self.conv(images)
        return activation


def through(beta: float) -> Callable[[Tensor], Tensor]:
    part = nn.Softplus(beta)
    return lambda activation: part(activation) + 1


def times(factor: float) -> Callable[[Tensor], Tensor]:
    return lambda activation: activation * factor


def in_order(*numbers: int) -> nn.Module:
    """Equal weights under equal names; only the order of the functions between differs."""
    functions = (nn.Tanh(), nn.LeakyReLU(0.3))
    return nn.Sequential(nn.Conv2d(3, 4, 3), *(functions[number] for number in numbers))


PAIRS: dict[str, tuple[Callable[[], nn.Module], Callable[[], nn.Module]]] = {
    "slope": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.LeakyReLU(0.1)),
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.LeakyReLU(0.2)),
    ),
    "stride": (conv, lambda: conv(stride=2)),
    "dilation": (conv, lambda: conv(dilation=2)),
    "padding": (conv, lambda: conv(padding=1)),
    "padding mode": (lambda: conv(padding=1), lambda: conv(padding=1, padding_mode="reflect")),
    "order": (lambda: in_order(0, 1), lambda: in_order(1, 0)),
    "lambda": (lambda: Applies(lambda x: x + 1), lambda: Applies(lambda x: x + 2)),
    "closure": (lambda: Applies(times(2)), lambda: Applies(times(3))),
    "function": (lambda: Applies(F.relu), lambda: Applies(F.silu)),
    "torch function": (lambda: Applies(torch.relu), lambda: Applies(torch.tanh)),
    "bound method": (
        lambda: Applies(nn.Softplus(1).forward),
        lambda: Applies(nn.Softplus(2).forward),
    ),
    "module in a list": (lambda: Lists(nn.Softplus(1)), lambda: Lists(nn.Softplus(2))),
    "module in a closure": (lambda: Applies(through(1)), lambda: Applies(through(2))),
    "private attribute": (lambda: Lists(nn.ReLU(), 1), lambda: Lists(nn.ReLU(), 2)),
    "hook of its own": (lambda: HooksItself(1), lambda: HooksItself(2)),
    "class attribute": (lambda: Applies(F.relu), lambda: AppliesHalf(F.relu)),
    "code": (lambda: Applies(F.relu), lambda: Reversed(F.relu)),
    "set": (
        lambda: Applies(lambda x: x if x.ndim in {4, "a", "b", "c"} else -x),
        lambda: Applies(lambda x: x if x.ndim in {3, "a", "b", "c"} else -x),
    ),
    "buffer": (lambda: OfABuffer(1.0), lambda: OfABuffer(2.0)),
    "dtype": (conv, lambda: conv().double()),
}


@pytest.mark.parametrize(("one", "other"), PAIRS.values(), ids=PAIRS)
def test_equal_weights_with_something_else_between_have_another_digest(
    one: Callable[[], nn.Module], other: Callable[[], nn.Module]
) -> None:
    digests = [network_digest(seeded(build)) for build in (one, one, other, other)]
    assert digests[0] == digests[1]
    assert digests[2] == digests[3]
    assert digests[0] != digests[2]
    if one is not conv or other().state_dict()["0.weight"].dtype == torch.float32:
        states = seeded(one).state_dict(), seeded(other).state_dict()
        assert states[0].keys() == states[1].keys()
        assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])


def test_a_global_constant_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = network_digest(seeded(OfAGlobal))
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 3.0)
    assert network_digest(seeded(OfAGlobal)) != before


def test_the_weights_of_a_part_count_that_a_list_names_too() -> None:
    networks = [seeded(lambda: Lists(nn.ReLU())) for _ in range(2)]
    with torch.no_grad():
        networks[1].conv.weight[0, 0, 0, 0] += 1
    assert network_digest(networks[0]) != network_digest(networks[1])


def test_what_a_module_of_ones_own_has_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    helpers = types.ModuleType("helpers")
    monkeypatch.setitem(vars(helpers), "FACTOR", 2.0)
    monkeypatch.setitem(globals(), "helpers", helpers)

    def digest() -> str:
        code = "lambda activation: activation * helpers.FACTOR"
        return network_digest(seeded(lambda: Applies(eval(code, globals()))))  # noqa: S307

    before = digest()
    assert digest() == before
    monkeypatch.setitem(vars(helpers), "FACTOR", 3.0)
    assert digest() != before


def test_a_class_attribute_counts_that_was_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = network_digest(seeded(lambda: Applies(F.relu)))
    monkeypatch.setattr(Applies, "factor", 3.0)
    assert network_digest(seeded(lambda: Applies(F.relu))) != before


@pytest.mark.parametrize("build", [pair[0] for pair in PAIRS.values()], ids=PAIRS)
def test_a_copy_has_the_same_digest(build: Callable[[], nn.Module]) -> None:
    network = seeded(build)
    assert network_digest(replicas.full_copy(network)) == network_digest(network)


def test_another_process_makes_the_same_digests() -> None:
    program = """
from tests.networks import seeded
from tests.models.test_digest import PAIRS
from hookviz.models.digest import network_digest
print([network_digest(seeded(build)) for pair in PAIRS.values() for build in pair])
"""
    here = [network_digest(seeded(build)) for pair in PAIRS.values() for build in pair]
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.strip() == str(here)


def test_what_cannot_be_digested_is_never_equal() -> None:
    network = seeded(Tiny)
    network.lock = threading.Lock()  # type: ignore[assignment]
    assert network_digest(network) != network_digest(network)


@pytest.mark.parametrize("name", ["slope", "stride", "closure", "buffer"])
def test_two_networks_of_one_name_keep_to_their_own_in_one_cache(name: str) -> None:
    cache = Budget(10_000_000).cache(10_000_000)
    for build in PAIRS[name]:
        model = as_model(seeded(build))
        with_cache = [hookviz.capture(model, random_input(0), cache=cache) for _ in range(2)]
        plain = hookviz.capture(model, random_input(0))
        layers = hookviz.list_layers(model, kind="all")[-1].name
        last = hookviz.capture(model, random_input(0), layers, cache=cache)[layers].values
        assert torch.equal(last, hookviz.capture(model, random_input(0), layers)[layers].values)
        for cap in with_cache:
            assert all(torch.equal(cap[key].values, plain[key].values) for key in plain)
        assert [cap.forward_passes for cap in with_cache] == [1, 0]
