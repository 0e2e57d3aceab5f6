"""Copies of networks whose attributes are functions that reach back into the network."""

import copy
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import weight_norm

import hookviz
from hookviz.hooking import purity
from hookviz.hooking.copies import deep_copy
from tests.networks import as_model, random_input


class HoldsFunctions(nn.Module):
    """Calls its conv through a lambda, a partial and a default, and counts in a function's cell."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = conv = nn.Conv2d(3, 3, 1)
        passes = 0

        def counted(x: Tensor) -> Tensor:
            nonlocal passes
            passes += 1
            return x * passes

        def by_default(x: Tensor, layer: nn.Module = conv) -> Any:
            return layer(x)

        self.counted = counted
        self.ways: list[Callable[[Tensor], Any]] = [
            lambda x: self.conv(1 * x),
            partial(lambda layer, x: layer(x), conv),
            by_default,
        ]

    def forward(self, x: Tensor) -> Any:
        for way in self.ways:
            x = way(x)
        return self.counted(x).mean((2, 3))


def test_functions_of_a_copy_call_the_layers_of_the_copy() -> None:
    network = HoldsFunctions()
    copied = deep_copy(network)
    calls: list[nn.Module] = []
    for module in (network.conv, copied.conv):
        module.register_forward_hook(lambda module, *_: calls.append(module))
    copied(torch.ones(1, 3, 4, 4))
    assert calls == [copied.conv] * 3


def test_functions_of_a_copy_count_for_the_copy() -> None:
    network = HoldsFunctions()
    image = torch.ones(1, 3, 4, 4)
    first = deep_copy(network)(image)
    for _ in range(2):
        deep_copy(network)(image)
    assert torch.equal(network(image), first)
    assert torch.equal(network(image), 2 * first)


def test_functions_of_a_copy_are_called_as_before() -> None:
    def halve(x: Tensor, /, by: float = 2.0, *, shift: float = 1.0) -> Tensor:
        """Half of it."""
        return x / by + shift + len(network_memory)

    network_memory: list[int] = [1]
    network = nn.Module()
    network.halve = halve  # type: ignore[assignment]
    copied: Any = deep_copy(network).halve
    assert copied is not halve
    assert copied(4, shift=0.5) == halve(4, shift=0.5)  # type: ignore[arg-type]
    assert (copied.__name__, copied.__doc__) == ("halve", "Half of it.")
    network_memory.append(2)
    assert copied(4, by=4) == 3


def test_what_cannot_be_copied_is_shared_by_functions() -> None:
    lock = threading.Lock()
    network = nn.Module()
    network.lock = lambda: lock  # type: ignore[assignment]
    copied: Any = deep_copy(network)
    assert copied.lock() is lock


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
def test_tensors_that_were_computed_are_copied_by_value() -> None:
    network = nn.Sequential(weight_norm(nn.Conv2d(3, 4, 3)))
    network.losses = [network(torch.ones(1, 3, 4, 4)).sum()]  # type: ignore[assignment]
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(network)
    copied: Any = deep_copy(network)
    assert torch.equal(copied[0].weight, network.get_submodule("0").weight)  # type: ignore[arg-type]
    assert torch.equal(copied.losses[0], network.losses[0])  # type: ignore[index]


def test_a_capture_sees_layers_that_functions_call() -> None:
    model = as_model(HoldsFunctions())
    assert list(hookviz.capture(model, random_input(0))) == ["conv", "conv#1", "conv#2"]
    first, second = (hookviz.capture(model, random_input(0)).logits for _ in range(2))
    assert first is not None
    assert second is not None
    assert torch.equal(first, second)
    assert not purity.is_pure(model.network)
