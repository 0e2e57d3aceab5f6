"""Whatever puts out maps is listed and captured, leaf or block, with the values that hooks see."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.capturing.cache import Budget
from hookviz.capturing.layer_trace import layer_trace
from hookviz.types import ActivationKey, Model
from tests.networks import as_model, random_input, seeded
from tests.plain_hooks import every_output


class Pair(nn.Module):
    """A block that puts out maps and their means, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, maps: Tensor) -> dict[str, Any]:
        found = self.conv(maps)
        return {"means": found.mean((2, 3)), "maps": (found, found.abs())}


class Odd(nn.Module):
    """A block in place that runs twice, one that puts out a dict, and no conv layer at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.block = nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
        self.pair = Pair()
        self.tokens = nn.Linear(4, 4)
        self.unused = nn.Conv2d(4, 4, 1)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(4, 5)

    def forward(self, images: Tensor) -> Tensor:
        found = self.block(self.block(self.stem(images)))
        found.mul_(0.5)  # writes into what the block has put out
        found = self.pair(found)["maps"][0]
        found = self.tokens(found.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        scores: Tensor = self.head(self.pool(found).flatten(1))
        return scores


@pytest.fixture
def odd() -> Model:
    return as_model(seeded(Odd).eval())


def test_blocks_stand_before_their_parts_and_vectors_are_left_out(odd: Model) -> None:
    layers = hookviz.list_layers(odd, kind="maps")
    assert [layer.name for layer in layers] == [
        *("stem", "block", "block.0", "block.1", "block.2", "pair", "pair.conv", "tokens", "pool"),
    ]
    assert [layer.index for layer in layers] == list(range(len(layers)))
    block, pair = layers[1], layers[5]
    assert (block.kind, block.calls, block.parameters) == ("Sequential", 2, 4 * 4 + 4 + 2 * 4)
    assert pair.output_shape == (4, 16, 16)  # of its maps, though the means come first
    assert {layer.name for layer in layers} >= {info.name for info in hookviz.list_layers(odd)}
    places = layer_trace(odd, (3, 16, 16)).map_outputs
    assert places["block"] == (ActivationKey("block"), ActivationKey("block", 1))
    maps = [ActivationKey("pair", 0, ("maps", at)) for at in "01"]
    assert places["pair"] == tuple(maps)
    cap = hookviz.capture(odd, random_input(5), ["head"])
    with pytest.raises(hookviz.HookVizError, match="head puts out 5 numbers, no maps") as told:
        hookviz.make_grid(cap["head"])
    assert "kind='maps'" in str(told.value)
    assert "extract_features" in str(told.value)


def test_values_of_a_network_of_ones_own_equal_plain_hooks(odd: Model) -> None:
    image = random_input(3)
    seen = every_output(odd.network, image)
    cap = hookviz.capture(
        odd, image, [layer.name for layer in hookviz.list_layers(odd, kind="maps")]
    )
    for name in ("stem", "block", "block.0", "block.1", "block.2", "pair.conv", "pool"):
        calls = cap.calls(name)
        assert len(calls) == len(seen[name])
        for part, expected in zip(calls, seen[name], strict=True):
            assert torch.equal(part.values, expected[0]), name
    for place, expected in enumerate(seen["pair"][0]["maps"]):
        assert torch.equal(cap[f"pair[maps][{place}]"].values, expected[0])
    assert hookviz.make_grid(cap["pair[maps][1]"]).shape == (4, 16, 16)


@pytest.mark.parametrize("name", ["resnet18", "googlenet"])
def test_values_in_torchvision_networks_equal_plain_hooks(name: str) -> None:
    model = hookviz.load_model(name, "random")
    image = random_input(4, side=64)
    seen = every_output(model.network, image)
    every = hookviz.list_layers(model, kind="maps", input_shape=(3, 64, 64))
    layers = [layer for layer in every if not layer.is_function]  # which no plain hook sees
    cap = hookviz.capture(model, image, [layer.name for layer in layers])
    assert len(layers) > len(hookviz.list_layers(model)) * 2
    for layer in layers:
        assert len(layer.output_shape) == 3
        for part, expected in zip(cap.calls(layer.name), seen[layer.name], strict=True):
            assert torch.equal(part.values, expected[0]), layer.name
        assert cap[layer.name].values.shape == layer.output_shape


def test_one_pass_keeps_all_that_puts_out_maps_where_there_is_room(odd: Model) -> None:
    cache, image = Budget(10**6).cache(10**6), random_input(6)
    names = [layer.name for layer in hookviz.list_layers(odd, kind="maps")]
    assert hookviz.capture(odd, image, "block", cache=cache).forward_passes == 1
    assert hookviz.capture(odd, image, names, cache=cache).forward_passes == 0
    small = Budget(10**6).cache(40_000)  # room for the conv layers alone
    hookviz.capture(odd, image, "block.2", cache=small)
    assert hookviz.capture(odd, image, ["stem", "pair.conv"], cache=small).forward_passes == 0
    assert hookviz.capture(odd, image, "pair", cache=small).forward_passes == 1
