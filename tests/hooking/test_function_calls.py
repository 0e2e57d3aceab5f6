"""What is seen of a network's functions, against the same calls written out."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hookviz.hooking import hooks
from hookviz.hooking.function_calls import (
    KINDS,
    is_function,
    kind_of_function,
    observe_functions,
    split_name,
)
from tests.networks import hook_count, random_input, seeded


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList([nn.Conv2d(3, 3, 1)])
        self.act = nn.ReLU()

    def forward(self, maps: Tensor) -> Tensor:
        maps = torch.sigmoid(maps)
        maps = F.max_pool2d(F.relu(self.parts[0](maps)), 2)
        changed: Tensor = self.act(maps).relu_().relu()
        return changed


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block, self.broken = Block(), False

    def forward(self, images: Tensor) -> Tensor:
        maps = torch.tanh(self.block(images))
        if self.broken:
            raise RuntimeError("the fuse has blown")
        return maps


NAMES = (
    *("block.sigmoid() at the start", "block.parts.relu() after 0"),
    *("block.parts.max_pool2d() after 0", "block.relu() after act", "block.relu() after act"),
    "tanh() after block",
)


def seen_in(network: nn.Module) -> list[hooks.Call]:
    seen: list[hooks.Call] = []
    with observe_functions(network, frozenset({"block.parts.0", "block.act"}), seen.append):
        network(random_input(1, side=8))
    return seen


def test_calls_go_by_their_block_and_the_layer_before() -> None:
    network = seeded(Net)
    seen = seen_in(network)
    assert tuple(call.layer for call in seen) == NAMES  # not the one inside nn.ReLU
    assert [call.index for call in seen] == [0, 0, 0, 0, 1, 0]
    pooled = F.max_pool2d(F.relu(network.block.parts[0](torch.sigmoid(random_input(1, side=8)))), 2)
    assert torch.equal(seen[2].output, pooled)
    assert torch.equal(seen[-1].output, torch.tanh(pooled))
    assert hook_count(network) == 0
    network.broken = True  # no hook is left where the pass breaks off
    with pytest.raises(RuntimeError, match="fuse"):
        seen_in(network)
    assert hook_count(network) == 0
    assert torch._C._len_torch_function_stack() == 0


def test_a_name_tells_what_is_called_where() -> None:
    assert [kind_of_function(name) for name in NAMES[:3]] == ["Sigmoid", "ReLU", "MaxPool2d"]
    assert all(map(is_function, NAMES))
    assert not is_function("block.relu")
    assert split_name(NAMES[0]) == ("sigmoid", "in block")
    assert split_name(NAMES[1]) == ("relu", "after block.parts.0")
    assert split_name(NAMES[5]) == ("tanh", "after block")
    assert all(hasattr(nn, kind) for kind in KINDS.values())


MAPS = torch.rand(1, 2, 8, 8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda maps: F.relu(maps, inplace=True), "ReLU"),
        (F.relu_, "ReLU"),
        (lambda maps: maps.relu(), "ReLU"),
        (F.relu6, "ReLU6"),
        (F.leaky_relu, "LeakyReLU"),
        (F.elu, "ELU"),
        (F.selu, "SELU"),
        (F.gelu, "GELU"),
        (lambda maps: F.silu(maps, inplace=True), "SiLU"),
        (F.mish, "Mish"),
        (F.hardswish, "Hardswish"),
        (F.hardsigmoid, "Hardsigmoid"),
        (F.hardtanh, "Hardtanh"),
        (F.softplus, "Softplus"),
        (F.logsigmoid, "LogSigmoid"),
        (lambda maps: maps.sigmoid(), "Sigmoid"),
        (lambda maps: F.prelu(maps, torch.ones(1)), "PReLU"),
        (lambda maps: F.max_pool2d(maps, 2), "MaxPool2d"),
        (lambda maps: F.max_pool2d(maps, 2, return_indices=True)[0], "MaxPool2d"),
        (lambda maps: F.avg_pool2d(maps, 2), "AvgPool2d"),
        (lambda maps: F.adaptive_avg_pool2d(maps, 1), "AdaptiveAvgPool2d"),
        (lambda maps: F.adaptive_max_pool2d(maps, 1), "AdaptiveMaxPool2d"),
    ],
)
def test_every_way_to_call_is_seen(call: Callable[[Tensor], Tensor], kind: str) -> None:
    class Calls(nn.Module):
        def forward(self, maps: Tensor) -> Tensor:
            return call(maps.clone())

    seen: list[hooks.Call] = []
    given: list[Tensor] = []
    with observe_functions(
        Calls(), frozenset(), seen.append, lambda call: given.append(call.inputs[0].clone())
    ):
        put_out = Calls()(MAPS)
    [one] = seen
    assert kind_of_function(one.layer) == kind
    found = one.output[0] if isinstance(one.output, tuple) else one.output
    assert torch.equal(found, put_out)
    assert torch.equal(given[0], MAPS)  # as it was before a function in place wrote over it
