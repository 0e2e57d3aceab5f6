from collections import OrderedDict, namedtuple
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

NamedPair = namedtuple("NamedPair", ["left", "right"])


@dataclass
class Boxed:
    values: Tensor
    note: str = "no tensor"


def test_unknown_name_registers_nothing_and_names_the_nearest() -> None:
    network = seeded(Tiny)
    with (
        pytest.raises(UnknownLayerError, match="'conv1'") as caught,
        hooks.observe(network, ["conv2", "cnov1"], lambda _: None),
    ):
        pytest.fail("the block must not run")
    assert caught.value.nearest[0] in {"conv1", "conv2"}
    assert hook_count(network) == 0


def test_the_network_itself_has_no_name() -> None:
    network = seeded(Tiny)
    calls: list[hooks.Call] = []
    with hooks.observe(network, [""], calls.append):
        scores = network(random_input(0))
    assert [call.layer for call in calls] == [""]
    assert calls[0].output is scores


def test_tensors_in_walks_nested_outputs() -> None:
    a, b, c, d = (torch.full((1,), float(number)) for number in range(4))
    nested = {"top": (a, [b, None]), "pair": NamedPair(c, "text"), "box": Boxed(d)}
    found = list(hooks.tensors_in(nested))
    assert [path for path, _ in found] == [
        ("top", "0"),
        ("top", "1", "0"),
        ("pair", "left"),
        ("box", "values"),
    ]
    assert [tensor.item() for _, tensor in found] == [0, 1, 2, 3]


def test_tensors_in_passes_by_what_holds_none() -> None:
    # Gone through one by one, the first would take hours.
    beside = (range(10**11), memoryview(bytes(10**6)), bytearray(10**6))
    tensor = torch.ones(1)
    assert [path for path, _ in hooks.tensors_in((*beside, tensor))] == [("3",)]


def test_what_an_observer_returns_changes_nothing() -> None:
    network = seeded(Tiny)
    given = random_input(0)
    with torch.no_grad(), hooks.observe(network, ["conv2"], lambda call: call.output * 0):
        seen = network(given)
    torch.testing.assert_close(seen, network(given).detach(), rtol=0, atol=0)


def test_before_sees_what_goes_in_while_it_is_still_there() -> None:
    network = seeded(Tiny)
    taken: list[tuple[int, Tensor]] = []

    def see(call: hooks.Call) -> None:
        assert call.output is None
        taken.append((call.index, call.inputs[0].clone()))

    with torch.no_grad(), hooks.before(network, ["relu"], see):
        network(random_input(0))
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


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:FutureWarning")
def test_a_layer_inside_of_a_script_is_found() -> None:
    block: nn.Module = torch.jit.script(nn.Sequential(nn.Conv2d(3, 4, 1)))
    network = nn.Sequential(block)
    with hooks.observe(network, ["0.0"], print):
        assert hook_count(network) == 1
    assert hook_count(network) == 0


@pytest.mark.parametrize("name", ["empty", "nothing", "alias.0", "block.", "block..0", "weight"])
def test_what_is_no_layer_is_refused_with_the_nearest(name: str) -> None:
    with pytest.raises(UnknownLayerError) as caught, hooks.observe(Nested(), [name], print):
        pytest.fail("the block must not run")
    assert set(caught.value.nearest) <= {"block", "block.0", "block.1", "alias"}


class Pair(NamedTuple):
    maps: Tensor
    size: int


@dataclass(frozen=True)
class Boxes:
    scores: Tensor
    name: str


def test_an_output_keeps_its_form() -> None:
    one = torch.ones(2)
    output = OrderedDict(pair=Pair(one, 3), listed=[one, None], boxes=Boxes(one, "boxes"))
    found = map_tensors(output, lambda tensor: tensor + 1)
    assert isinstance(found, OrderedDict)
    assert isinstance(found["pair"], Pair)
    assert found["pair"].size == 3
    assert found["listed"][1] is None
    assert found["boxes"].name == "boxes"
    for tensor in (found["pair"].maps, found["listed"][0], found["boxes"].scores):
        assert tensor.tolist() == [2, 2]
    assert one.tolist() == [1, 1]
