from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.hooking import hooks
from hookviz.hooking.channel_axes import ChannelAxes

IMAGES, SOUND, TOKENS = torch.ones(2, 3, 9, 9), torch.ones(2, 3, 9), torch.ones(2, 5, 3)


def axes_of(network: nn.Module, *given: Tensor) -> dict[str, int | None]:
    """The axis of each layer's output, by layer and part of the output."""
    axes, found = ChannelAxes(), {}
    modules = dict(network.named_modules())

    def see(call: hookviz.Call) -> None:
        outputs = call.output if isinstance(call.output, tuple) else (call.output,)
        for place, output in enumerate(outputs):
            if isinstance(output, Tensor):
                path = (str(place),) if isinstance(call.output, tuple) else ()
                axis = axes.axis(modules[call.layer], call, path, output)
                found["/".join((call.layer, *path))] = axis

    with hooks.observe(network, [name for name, _ in network.named_modules() if name], see):
        network(*given)
    return found


class Runs(nn.Module):
    def __init__(self, way: Callable[..., Any]) -> None:
        super().__init__()
        self.way = way

    def forward(self, *given: Tensor) -> Any:
        return self.way(*given)


@pytest.mark.parametrize(
    ("layer", "given", "axis"),
    [
        (nn.Conv1d(3, 4, 3), SOUND, 1),
        (nn.Conv1d(3, 4, 3), SOUND[0], 0),
        (nn.Conv2d(3, 4, 3), IMAGES, 1),
        (nn.Conv2d(3, 4, 3), IMAGES[0], 0),
        (nn.ConvTranspose1d(3, 4, 3), SOUND, 1),
        (nn.BatchNorm1d(3), SOUND, 1),
        (nn.BatchNorm2d(3), IMAGES, 1),
        (nn.GroupNorm(1, 3), SOUND, 1),
        (nn.InstanceNorm1d(3), SOUND, 1),
        (nn.InstanceNorm1d(3), SOUND[0], 0),
        (nn.MaxPool2d(2), IMAGES, 1),
        (nn.AvgPool1d(2), SOUND, 1),
        (nn.AdaptiveAvgPool2d(1), IMAGES[0], 0),
        (nn.Linear(3, 4), TOKENS, 2),
        (nn.Linear(9, 4), IMAGES, 3),
        (nn.Linear(3, 4), torch.ones(3), 0),
        (nn.LayerNorm(3), TOKENS, 2),
        (nn.RMSNorm(3), TOKENS, 2),
        (nn.LayerNorm((5, 3)), TOKENS, None),
        (nn.Embedding(7, 3), torch.ones(2, 5, dtype=torch.long), 2),
        (nn.TransformerEncoderLayer(3, 1, 4, batch_first=True), TOKENS, 2),
        (nn.ReLU(), IMAGES, None),
        (nn.Flatten(), IMAGES, 1),
        (Runs(lambda given: given + 1), TOKENS, None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_a_module_of_torchs_own_says_where_its_channels_are(
    layer: nn.Module, given: Tensor, axis: int | None
) -> None:
    assert axes_of(nn.Sequential(layer), given)["0"] == axis


def test_of_several_outputs_the_first_has_units() -> None:
    found = axes_of(nn.Sequential(nn.LSTM(3, 4, batch_first=True)), TOKENS)
    assert found == {"0/0": 2}
    attention = nn.MultiheadAttention(3, 1, batch_first=True)
    both = axes_of(Holds(attention, lambda layer, x: layer(x, x, x)), TOKENS)
    assert both == {"layer/0": 2, "layer/1": None}  # of the weights, tokens by tokens


class Holds(nn.Module):
    """A layer, and how it is run."""

    def __init__(self, layer: nn.Module, way: Callable[..., Any]) -> None:
        super().__init__()
        self.layer = layer
        self.way = way

    def forward(self, given: Tensor) -> Any:
        return self.way(self.layer, given)


@pytest.mark.parametrize("side", [4, 9])
def test_an_activation_has_them_where_its_tensor_has_them(side: int) -> None:
    tokens = nn.Sequential(nn.Linear(3, side), nn.GELU(), nn.Dropout(), nn.ReLU(inplace=True))
    assert axes_of(tokens, torch.ones(2, side, 3)) == {"0": 2, "1": 2, "2": 2, "3": 2}
    maps = nn.Sequential(nn.Conv2d(3, side, 1), nn.ReLU(), nn.Sequential(nn.Tanh()))
    given = torch.ones(2, 3, side, side)
    assert axes_of(maps, given) == {"0": 1, "1": 1, "2": 1, "2.0": 1}


def test_a_sum_has_them_as_the_layer_before_unless_another_axis_is_as_long() -> None:
    def shortcut(channels: int) -> nn.Module:
        conv = nn.Conv2d(channels, channels, 1)
        return nn.Sequential(Holds(conv, lambda layer, x: layer(x) + x), nn.ReLU())

    # As many images as channels are no reason for doubt; as many rows are.
    assert axes_of(shortcut(2), torch.ones(2, 2, 9, 9))["1"] == 1
    assert axes_of(shortcut(9), torch.ones(2, 9, 9, 9))["1"] is None
    for length in (4, 5):  # what is transposed is not taken for what it was
        layers = nn.Sequential(nn.Linear(3, 4), Runs(lambda x: x.transpose(1, 2)), nn.ReLU())
        assert axes_of(layers, torch.ones(2, length, 3)) == {"0": 2, "1": None, "2": None}
