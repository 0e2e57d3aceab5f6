import pytest
from torch import Tensor, nn

from hookviz.atlas.channel_table import channel_table, names_with_maps
from hookviz.capturing.layer_trace import layer_trace
from hookviz.errors import ModelError
from hookviz.types import Model
from tests.networks import as_model, seeded


def test_every_layers_channels_have_their_place(tiny: Model) -> None:
    table = channel_table(layer_trace(tiny, (3, 16, 16)))
    assert table.channels == 10
    assert [(layer.address, layer.rows, layer.cells) for layer in table.layers] == [
        ("conv1", slice(0, 4), (16, 16)),
        ("conv2", slice(4, 10), (7, 7)),
    ]
    assert table.by_address["conv2"].name == "conv2"


def test_each_call_of_a_layer_has_its_own_channels_and_functions_none() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 6, 3)
            self.relu, self.head = nn.ReLU(), nn.Linear(6, 2)

        def forward(self, images: Tensor) -> Tensor:
            maps: Tensor = self.relu(self.two(self.relu(self.one(images))))
            scores: Tensor = self.head(maps.mean((2, 3)))
            return scores

    model = as_model(seeded(Shared))
    trace = layer_trace(model, (3, 16, 16))
    table = channel_table(trace, ("relu", "two"))
    assert [(each.address, each.channels, each.cells) for each in table.layers] == [
        ("relu", 4, (14, 14)),
        ("relu#1", 6, (12, 12)),
        ("two", 6, (12, 12)),
    ]
    assert names_with_maps(model, trace, None) is None
    with pytest.raises(ModelError, match=r"'head' of Shared puts out no maps.*Layer 'two'"):
        names_with_maps(model, trace, "head")

    class Calling(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, images: Tensor) -> Tensor:
            scores: Tensor = self.conv(images).relu().mean((2, 3))
            return scores

    model = as_model(seeded(Calling))
    trace = layer_trace(model, (3, 16, 16))
    with pytest.raises(ModelError, match=r"relu\(\) after conv is a function .* layer before it"):
        names_with_maps(model, trace, "relu() after conv")
