import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune, spectral_norm, weight_norm

import hookviz
from hookviz.hooking import replicas
from tests.networks import Tiny, as_model, hook_count, random_input, seeded

pytestmark = pytest.mark.filterwarnings("ignore:.*(weight|spectral)_norm.*:FutureWarning")


class Watcher:
    """A person's own hook, which holds what can't be copied."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.calls = 0

    def __call__(self, *_: Any, **__: Any) -> None:
        self.calls += 1


def hooked(watcher: Watcher) -> Tiny:
    network = seeded(Tiny)
    network.conv1.register_forward_hook(watcher, with_kwargs=True, always_call=True)
    network.conv2.register_forward_pre_hook(watcher, with_kwargs=True)
    network.conv2.register_forward_pre_hook(lambda *_: watcher())
    network.head.register_full_backward_hook(partial(watcher, "head"))
    network.head.register_full_backward_pre_hook(watcher)
    network.register_forward_hook(watcher)
    network.conv1.weight.register_hook(lambda _: watcher())  # type: ignore[no-untyped-call]
    return network


def test_hooks_of_a_persons_own_never_fire_and_stay_where_they_are() -> None:
    watcher = Watcher()
    network = hooked(watcher)
    before = hook_count(network)
    model = as_model(network)
    assert hook_count(model.network) == 0
    hookviz.list_layers(model, kind="all")
    hookviz.capture(model, random_input(0))
    hookviz.run_lens("grad-cam", model, random_input(0))
    hookviz.run_lens("verify", model, random_input(0))
    assert watcher.calls == 0
    assert hook_count(network) == before == 6
    network(random_input(0)).sum().backward()
    assert watcher.calls == 7


def test_hooks_on_the_shared_network_stay_off_its_replicas() -> None:
    model = as_model(seeded(Tiny))
    watcher = Watcher()
    model.network.get_submodule("conv1").register_forward_hook(watcher)
    hookviz.capture(model, random_input(0))
    hookviz.run_lens("saliency", model, random_input(0))
    assert watcher.calls == 0


def test_the_copy_of_a_watched_network_is_not_watched() -> None:
    network = seeded(Tiny)
    with hookviz.watch(network):
        model = as_model(network)
    assert hook_count(model.network) == 0
    hookviz.capture(model, torch.full((1, 3, 16, 16), torch.nan))


class Keeps(nn.Module):
    """A network that hooks itself, by methods and by a partial application of one."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.conv.register_forward_hook(self.twice)
        self.conv.register_forward_hook(partial(self.add, 1.0))

    def twice(self, _module: nn.Module, _inputs: Any, output: Tensor) -> Tensor:
        self.kept = output
        return output * 2

    def add(self, number: float, _module: nn.Module, _inputs: Any, output: Tensor) -> Tensor:
        return output + number

    def forward(self, images: Tensor) -> Tensor:
        activation: Tensor = self.conv(images)
        return activation + self.kept


def pruned() -> nn.Module:
    network = nn.Sequential(nn.Conv2d(3, 4, 3))
    prune.l1_unstructured(network[0], "weight", amount=0.5)  # type: ignore[no-untyped-call]
    return network


OWN: dict[str, Callable[[], nn.Module]] = {
    "methods": Keeps,
    "weight norm": lambda: nn.Sequential(weight_norm(nn.Conv2d(3, 4, 3))),
    "spectral norm": lambda: nn.Sequential(spectral_norm(nn.Conv2d(3, 4, 3))),
    "pruning": pruned,
}


@pytest.mark.parametrize("build", OWN.values(), ids=OWN)
def test_hooks_that_belong_to_a_network_go_with_it(build: Callable[[], nn.Module]) -> None:
    network = seeded(build).eval()
    model = as_model(network)
    assert hook_count(model.network) == hook_count(network) > 0
    expected = network(random_input(0)).detach()
    copied = replicas.full_copy(model.network)
    assert torch.equal(copied(random_input(0)), expected)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
    assert torch.equal(model.network(random_input(0)), expected)
    cap = hookviz.capture(model, random_input(0))
    if build is not Keeps:
        assert torch.equal(next(iter(cap.values())).values, expected[0])
