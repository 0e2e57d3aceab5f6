"""What cells that are changed prove of what lies behind them."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.capturing.layer_trace import layer_trace
from hookviz.capturing.layout_probe import Found, Place, proven
from hookviz.types import ActivationKey, Layout
from tests.networks import as_model, hook_count, seeded
from tests.random_operations import WIDTH
from tests.random_tokens import ORDERS, SHARED, Arranged, TwoOrders, are_where_they_lie

FIRST = Layout("channels first")
TOKENS = Layout("tokens", grid=(2, 2))
WITH_CLASS = Layout("tokens", prefix_tokens=1, grid=(2, 2))
LEAF = Place("leaf", 0)


class Behind(nn.Module):
    """A convolution, and a layer that is given what `make` makes of its maps."""

    def __init__(self, make: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.conv: nn.Module = nn.Conv2d(3, 4, 8, 8)
        self.leaf = nn.Identity()
        self.end: nn.Module = nn.Identity()
        self.make, self.ran = make, 0

    def forward(self, images: Tensor) -> Any:
        self.ran = len(images)
        return self.end(self.leaf(self.make(self.conv(images))))


def found(make: Callable[[Tensor], Tensor]) -> Layout | None:
    model = as_model(seeded(lambda: Behind(make)))
    before = [value.clone() for value in model.network.state_dict().values()]
    shapes = {Place("conv", 0): (1, 4, 2, 2), LEAF: tuple(make(torch.zeros(1, 4, 2, 2)).shape)}
    layouts = proven(
        *(model, (3, 16, 16), shapes, {Place("conv", 0): FIRST}), wanted=frozenset([LEAF])
    )
    assert all(map(torch.equal, model.network.state_dict().values(), before))
    assert hook_count(model.network) == 0
    return layouts.outputs.get(LEAF)


class Counting(nn.Module):
    """Count its calls outside of buffers, as a person's own layer may."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, given: Tensor) -> Tensor:
        self.calls += 1
        return given


def test_a_layer_behind_the_last_one_wanted_is_called_as_often_as_the_first() -> None:
    network = seeded(lambda: Behind(by_rows))
    first, last = Counting(), Counting()
    network.conv, network.end = nn.Sequential(network.conv, first), last
    own = as_model(network)
    hookviz.capture(own, torch.rand(1, 3, 16, 16))
    trace = layer_trace(own, (3, 16, 16))
    known, leaf = {Place("conv.1", 0): FIRST}, Place("leaf", 0)
    shapes = {Place("conv.1", 0): (1, 4, 2, 2), leaf: (1, 4, 4)}
    assert trace.layouts
    assert proven(own, (3, 16, 16), shapes, known, wanted=frozenset([leaf])).outputs
    assert last.calls == first.calls
    assert proven(own, (3, 16, 16), {}, known, wanted=frozenset()) == Found({}, {})
    assert last.calls == first.calls  # without anything wanted nothing runs


def by_rows(maps: Tensor) -> Tensor:
    return maps.flatten(2).transpose(1, 2)


def behind_one(tokens: Tensor) -> Tensor:
    return torch.cat([torch.ones_like(tokens[:, :1]), tokens], 1)


@pytest.mark.parametrize(
    ("make", "layout"),
    [
        (by_rows, TOKENS),
        (lambda maps: behind_one(by_rows(maps)), WITH_CLASS),
        (lambda maps: behind_one(by_rows(maps)).flip(1), None),
        (lambda maps: by_rows(maps.transpose(2, 3)), None),
        (lambda maps: by_rows(maps.flip(2)), None),
        (lambda maps: by_rows(maps.flip(3)), None),
        (lambda maps: by_rows(maps).flip(1), None),
        (lambda maps: by_rows(maps).softmax(1), None),
        (lambda maps: by_rows(maps) * 0, None),
        (lambda maps: by_rows(maps).int(), None),
        (lambda maps: by_rows(maps)[:1], None),
        (lambda maps: maps.permute(0, 2, 3, 1), Layout("channels last")),
        (lambda maps: maps.permute(0, 3, 2, 1), None),
        (lambda maps: maps.flip(1) * 2, FIRST),
        (lambda maps: maps.transpose(2, 3), None),
    ],
)
def test_a_layout_is_found_where_just_those_cells_move(
    make: Callable[[Tensor], Tensor], layout: Layout | None
) -> None:
    assert found(make) == layout


class Network(nn.Module):
    """A convolution before a block, and one behind it, for one size of input alone."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, WIDTH, 3, padding=1)
        self.block = block
        self.last = nn.Conv2d(WIDTH, 2, 3)

    def forward(self, images: Tensor) -> Tensor:
        if images.shape[2:] != (9, 14):
            raise ValueError("9×14 alone")
        scores: Tensor = self.last(self.block(self.stem(images))).mean((2, 3))
        return scores


NAMES = {"last": "channels last", "rows": "tokens"}


@pytest.mark.parametrize("attention", range(4))
@pytest.mark.parametrize("order", ORDERS)
def test_what_is_mixed_is_put_back_where_it_lies(order: str, attention: int) -> None:
    prefix = attention % 3 if order in {"rows", "columns", "backwards", "mirrored"} else 0
    network = seeded(lambda: Network(Arranged(order, attention, prefix)))
    model = hookviz.wrap(network, example=(torch.zeros(1, 3, 9, 14),))
    trace = layer_trace(model, (3, 9, 14))
    places = Arranged(order, attention, prefix).cells(9, 14)
    listed = {info.name.removeprefix("block."): info for info in trace.every}
    ran = [name for name in places if name in listed]
    assert len(ran) >= 5
    word = "unknown" if order in tuple(ORDERS)[4:] else NAMES.get(order, "windows")
    said = dict.fromkeys(ran, word)
    if order == "last" and "attention" in said:
        said["attention"] = "tokens"  # torch's own takes them in one row
    assert {name: listed[name].layout for name in ran} == said
    image = torch.randn(1, 3, 9, 14)
    cap = hookviz.capture(model, image, [f"block.{name}" for name in ran])
    for name in ran:
        recorded = cap.calls(f"block.{name}")[0]
        assert are_where_they_lie(recorded, places[name])
        assert (recorded.values.shape[1:] == (9, 14)) == (word != "unknown")
        assert recorded.values.shape == listed[name].output_shape
    turned = seeded(lambda: Network(Arranged("rows", 2, turns=True)))
    trace = layer_trace(hookviz.wrap(turned, example=(torch.zeros(1, 3, 9, 14),)), (3, 9, 14))
    words = {name: trace.layouts[ActivationKey(f"block.{name}")].word for name in ("qkv", "up")}
    assert words == {"qkv": "tokens", "up": "unknown"}  # turned around behind attention


@pytest.mark.parametrize(
    "orders", [("windows", "rows"), ("rows", "shifted windows"), ("rows", "last"), ("last", "rows")]
)
def test_each_call_of_a_shared_layer_has_its_own_layout(orders: tuple[str, str]) -> None:
    network = seeded(lambda: Network(TwoOrders(orders, 0)))
    model = hookviz.wrap(network, example=(torch.zeros(1, 3, 9, 14),))
    cap = hookviz.capture(model, torch.randn(1, 3, 9, 14), [f"block.blocks.0.{n}" for n in SHARED])
    for name in SHARED:
        for order, recorded in zip(orders, cap.calls(f"block.blocks.0.{name}"), strict=True):
            assert recorded.layout.word == NAMES.get(order, "windows"), (name, order)
            assert are_where_they_lie(recorded, Arranged(order, 0).cells(9, 14)[name])
