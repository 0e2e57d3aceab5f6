import copy
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hookviz
from hookviz.explaining.layers.layer_recorder import record_layer_call
from hookviz.explaining.layers.ranking import (
    source_of,
    sources,
    strongest_by_contribution,
    strongest_by_weight,
)
from hookviz.types import Model
from tests.networks import Tiny, as_model, hook_count, random_input, seeded

CONVS: list[Callable[[], nn.Conv2d]] = [
    lambda: nn.Conv2d(6, 4, 3, padding=1),
    lambda: nn.Conv2d(6, 4, (2, 3), stride=(2, 1), padding=2, dilation=(1, 2), groups=2),
    lambda: nn.Conv2d(6, 6, 5, padding=2, padding_mode="reflect", groups=6),
    lambda: nn.Conv2d(6, 4, 1, bias=False),
]


def behind(conv: Callable[[], nn.Conv2d]) -> Model:
    return as_model(seeded(lambda: nn.Sequential(nn.Conv2d(3, 6, 1), conv())))


@pytest.mark.parametrize("conv", CONVS)
def test_inputs_are_ranked_by_their_weights_and_by_what_the_map_loses_without_each(
    conv: Callable[[], nn.Conv2d],
) -> None:
    model = behind(conv)
    call = record_layer_call(model, random_input(1), "1")
    layer: Any = model.network.get_submodule("1")
    for channel in range(layer.out_channels):
        kernel = layer.weight[channel].detach().numpy()
        first = channel // (layer.out_channels // layer.groups) * len(kernel)
        norms = {first + index: np.linalg.norm(part) for index, part in enumerate(kernel)}
        losses = {}
        for number in call.inputs_of(channel):
            without = call.input.clone()
            without[number] = 0
            with torch.no_grad():
                lost = call.output - layer(without[None])[0]
            losses[number] = lost[channel].abs().mean().item()
        by_weight = strongest_by_weight(call, channel)
        by_contribution = strongest_by_contribution(call, channel)
        assert dict(by_weight) == pytest.approx(norms, rel=1e-6)
        assert dict(by_contribution) == pytest.approx(losses, rel=1e-4, abs=1e-6)
        for ranked in (by_weight, by_contribution):
            amounts = [amount for _, amount in ranked]
            assert amounts == sorted(amounts, reverse=True)


@pytest.mark.parametrize(
    ("name", "layer", "source"),
    [
        ("resnet18", "conv1", None),  # the image
        ("resnet18", "layer1.0.conv1", "conv1"),  # through a max pool
        ("resnet18", "layer1.1.conv1", None),  # a residual sum
        ("mobilenet_v2", "features.3.conv.2", "features.3.conv.1.0"),
        ("squeezenet1_1", "features.3.squeeze", "features.0"),
        ("squeezenet1_1", "features.4.squeeze", None),  # two maps joined
        ("densenet121", "features.denseblock1.denselayer2.conv1", None),
        ("convnext_tiny", "features.1.0.block.0", None),  # a layer norm mixes the channels
        ("efficientnet_b0", "features.2.0.block.3.0", "features.2.0.block.1.0"),  # past its gate
        ("shufflenet_v2_x1_0", "stage2.1.branch2.0", None),  # shuffled
        ("shapesnet", "stage1.shortcut.conv", "stem.first.conv"),
    ],
)
def test_sources_in_models_that_people_know(name: str, layer: str, source: str | None) -> None:
    assert source_of(hookviz.load_model(name, "random"), layer) == source


@pytest.mark.sweep("by day by the names of the sources: the tests here")
@pytest.mark.parametrize("name", ["resnet18", "vgg11", "squeezenet1_1", "densenet121"])
def test_a_change_in_a_sources_channel_changes_that_input_channel_and_no_other(name: str) -> None:
    model = hookviz.load_model(name, "random")
    network, image = copy.deepcopy(model.network), random_input(3, 64)
    rng = random.Random(name)
    given: dict[str, Tensor] = {}

    def watch(layer: str) -> None:
        def keep(_module: nn.Module, args: tuple[Tensor, ...]) -> None:
            given[layer] = args[0].clone()

        network.get_submodule(layer).register_forward_pre_hook(keep)

    source_by_layer = dict(sources(model))
    chosen = rng.sample(sorted(source_by_layer), min(8, len(source_by_layer)))
    for layer in chosen:
        watch(layer)
    with torch.no_grad():
        network(image)
        before = dict(given)
        for layer in chosen:
            source = network.get_submodule(source_by_layer[layer])
            channel = rng.randrange(before[layer].shape[1])

            def raise_one(
                _module: nn.Module, _args: object, output: Tensor, channel: int = channel
            ) -> None:
                output[:, channel] += 3

            handle = source.register_forward_hook(raise_one)
            network(image)
            handle.remove()
            changed = (given[layer] != before[layer]).any(dim=(0, 2, 3)).nonzero().flatten()
            assert changed.tolist() == [channel], (layer, source_by_layer[layer])


class Joined(nn.Module):
    """Two convolutions with something between them, named `way`."""

    def __init__(self, way: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3)
        self.second = nn.Conv2d(4, 2, 1)
        self.way = way

    def forward(self, images: Tensor) -> Tensor:
        values: Tensor = self.second(self.way(self.first(images)))
        return values


def written(found: Tensor, view: Callable[[Tensor], Tensor]) -> Tensor:
    """`found` after something wrote into it by way of a view."""
    view(found).mul_(2)
    return found


@pytest.mark.parametrize(
    ("way", "kept"),
    [
        (lambda x: x, True),
        (lambda x: F.relu_(x).clone().tanh(), True),
        (lambda x: F.dropout(F.pad(x, (1, 1, 1, 1)), training=False), True),
        (lambda x: F.interpolate(F.avg_pool2d(x, 2), scale_factor=2), True),
        (lambda x: 0.5 * x + 1, True),
        (lambda x: x * torch.ones(1, 4, 1, 1, device=x.device), True),
        (lambda x: torch.sigmoid(F.adaptive_avg_pool2d(x, 1)) * x, True),
        (lambda x: x.mul_(2), True),
        (lambda x: torch.cat([x]), True),
        (lambda x: x + x, False),
        (lambda x: x.add_(torch.ones_like(x)), False),
        (lambda x: x.flip(1), False),
        (lambda x: x[:, [3, 2, 1, 0]], False),
        (lambda x: torch.cat([x[:, 2:], x[:, :2]], 1), False),
        (lambda x: torch.cat([x, x], 2), False),
        (lambda x: x.softmax(1), False),
        (lambda x: x.transpose(2, 3).clone(), False),
        (lambda x: written(x, lambda whole: whole[:, 1:]), False),
        (lambda x: F.pad(x, (0, 0, 0, 0, 1, -1)).tanh().flip(1), False),
    ],
)
def test_only_what_keeps_channels_for_certain_is_followed(
    way: Callable[[Tensor], Tensor], kept: bool
) -> None:
    model = as_model(seeded(lambda: Joined(way)))
    assert source_of(model, "second") == ("first" if kept else None)
    assert source_of(model, "first") is None


def test_calls_of_shared_layers() -> None:
    conv = nn.Conv2d(4, 4, 3, padding=1)
    model = as_model(nn.Sequential(nn.Conv2d(3, 4, 1), conv, nn.Tanh(), conv, nn.Conv2d(4, 2, 1)))
    assert source_of(model, "1") is None  # from the first one first, then from itself
    assert source_of(model, "4") == "1#1"


def test_a_network_that_reads_values_is_run_for_real(tiny: Model) -> None:
    class Choosy(Tiny):
        def forward(self, images: Tensor) -> Tensor:
            if images.sum().item() > 1:
                raise ValueError("zeros are expected")
            return super().forward(images)

    model = as_model(Choosy())
    assert dict(sources(model)) == {"conv2": "conv1"} == dict(sources(tiny))
    assert sources(model) is sources(model)
    assert hook_count(model.network) == 0


def test_what_cannot_be_answered_says_why(tiny: Model) -> None:
    with pytest.raises(hookviz.UnknownLayerError, match="no conv layer in Tiny called 'relu'"):
        source_of(tiny, "relu")

    class Broken(Tiny):
        def forward(self, images: Tensor) -> Tensor:
            self.conv1(images)
            raise RuntimeError("broken inside")

    model = as_model(Broken())
    with pytest.raises(hookviz.ModelError, match="broken inside"):
        sources(model)
    assert hook_count(model.network) == 0
    assert not torch.overrides._get_current_function_mode_stack()  # type: ignore[no-untyped-call]
