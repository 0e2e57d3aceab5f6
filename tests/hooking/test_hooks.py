from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from hookviz.errors import UnknownLayerError
from hookviz.hooking import hooks
from hookviz.hooking.hooks import map_tensors
from tests.networks import Tiny, hook_count, random_input, seeded


class Pair(NamedTuple):
    left: Tensor
    right: str


@dataclass(frozen=True)
class Box:
    values: Tensor
    note: str = "no tensor"


def test_tensors_in_nested_outputs_have_paths_and_a_mapping_keeps_the_form() -> None:
    a, b, c, d = (torch.full((1,), float(number)) for number in range(4))
    nested = OrderedDict(top=(a, [b, None]), pair=Pair(c, "text"), box=Box(d))
    found = list(hooks.tensors_in(nested))
    assert [path for path, _ in found] == [
        *(("top", "0"), ("top", "1", "0"), ("pair", "left"), ("box", "values")),
    ]
    assert [tensor.item() for _, tensor in found] == [0, 1, 2, 3]
    changed = map_tensors(nested, lambda tensor: tensor + 1)
    assert changed == OrderedDict(
        top=(a + 1, [b + 1, None]), pair=Pair(c + 1, "text"), box=Box(d + 1)
    )
    assert [type(each) for each in (changed, *changed.values())] == [OrderedDict, tuple, Pair, Box]
    assert a.item() == 0
    # Gone through one by one, the first would take hours.
    beside = (range(10**11), memoryview(bytes(10**6)), bytearray(10**6))
    assert [path for path, _ in hooks.tensors_in((*beside, a))] == [("3",)]


def test_what_an_observer_returns_changes_nothing_and_before_sees_what_goes_in() -> None:
    network = seeded(Tiny)
    taken: list[tuple[int, Tensor]] = []
    calls: list[hooks.Call] = []

    def see(call: hooks.Call) -> None:
        assert call.output is None
        taken.append((call.index, call.inputs[0].clone()))

    with (
        torch.no_grad(),
        hooks.before(network, ["relu"], see),
        hooks.observe(network, ["conv2"], lambda call: call.output * 0),
        hooks.observe(network, [""], calls.append),
    ):
        scores = network(random_input(0))
    assert torch.equal(scores, network(random_input(0)))
    assert [(call.layer, call.output) for call in calls] == [("", scores)]
    assert [index for index, _ in taken] == [0, 1]
    assert (taken[0][1] < 0).any()  # the ReLU works in place, and afterwards nothing is negative
    assert hook_count(network) == 0


class Nested(nn.Module):
    """A layer that goes by two names, a place without one, and a block."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU())
        self.alias = self.block[0]
        self.nothing = None
        self.register_module("empty", None)

    def forward(self, images: Tensor) -> Tensor:
        maps: Tensor = self.alias(images)
        return maps


class Renamed(Nested):
    """Lists its modules in a way of its own, as a wrapper does that hides itself."""

    def named_modules(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Module]]:
        for name, module in super().named_modules(*args, **kwargs):
            yield name.replace("block", "own"), module


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:FutureWarning")
@pytest.mark.parametrize(
    ("build", "name"),
    [(Nested, "alias"), (Nested, "block.0"), (Renamed, "own.0")],
)
def test_a_layer_is_found_by_any_of_its_names(build: Callable[[], nn.Module], name: str) -> None:
    calls: list[hooks.Call] = []
    network = build()
    with hooks.observe(network, [name], calls.append):
        network(random_input(0))
    assert [call.layer for call in calls] == [name]
    assert hook_count(network) == 0
    block: nn.Module = torch.jit.script(nn.Sequential(nn.Conv2d(3, 4, 1)))
    scripted = nn.Sequential(block)
    with hooks.observe(scripted, ["0.0"], print):
        assert hook_count(scripted) == 1
    assert hook_count(scripted) == 0


@pytest.mark.parametrize(
    "name", ["empty", "nothing", "alias.0", "block.", "block..0", "weight", "aliaz"]
)
def test_what_is_no_layer_is_refused_with_the_nearest_and_nothing_is_hooked(name: str) -> None:
    network = Nested()
    with (
        pytest.raises(UnknownLayerError) as caught,
        hooks.observe(network, ["block.0", name], print),
    ):
        pytest.fail("the block must not run")
    assert set(caught.value.nearest) <= {"block", "block.0", "block.1", "alias"}
    assert name != "aliaz" or caught.value.nearest[0] == "alias"
    assert hook_count(network) == 0
