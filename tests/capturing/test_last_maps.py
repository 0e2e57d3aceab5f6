"""Where a network's last maps are, by networks that end in every way."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

import hookviz
from hookviz.capturing.inputs import prepare_input
from hookviz.capturing.last_maps import last_maps
from hookviz.capturing.layer_trace import input_trace
from hookviz.types import TOKENS, WINDOWS, Model
from tests.networks import as_model, random_input, seeded
from tests.pictures import picture


def found(model: Model, *, size: int = 32) -> str | None:
    trace = input_trace(model, prepare_input(model, random_input(0, size)))
    return last_maps(trace, {layer.name for layer in trace.every})


@pytest.mark.parametrize(
    ("name", "last", "shape"),
    [
        ("resnet18", "layer4.1", (512, 7, 7)),  # a sum, and a ReLU that runs twice
        ("squeezenet1_1", "features.12", (512, 13, 13)),  # two convs' maps put together
        ("densenet121", "features.norm5", (1024, 7, 7)),
    ],
)
def test_it_is_what_the_scores_of_a_known_network_are_read_off(
    name: str, last: str, shape: tuple[int, ...]
) -> None:
    model = hookviz.load_model(name, "random")
    trace = input_trace(model, prepare_input(model, picture()))
    shapes = {layer.name: layer.output_shape for layer in trace.maps}
    assert last_maps(trace, {layer.name for layer in trace.every}) == last
    assert shapes[last] == shape
    assert last_maps(trace, {"fc", "classifier"}) is None  # which put out no maps
    if name == "resnet18":
        assert last_maps(trace, {layer.name for layer in trace.convs}) is None  # nor the sum


def test_grad_cam_begins_where_it_is_the_first_class_activation_map() -> None:
    """Zhou et al. 2016, of a network that ends in a mean and one linear layer."""
    model = hookviz.load_model("resnet18", "random")
    result = hookviz.run_lens("grad-cam", model, picture(), target=7)
    maps = hookviz.capture(model, picture(), "layer4")["layer4"].values
    assert isinstance(model.network.fc, nn.Linear)
    by_weights = torch.einsum("c,chw->hw", model.network.fc.weight[7].detach(), maps)
    expected = torch.relu(by_weights / maps[0].numel()).numpy()
    assert result.chosen["layer"] == "layer4.1"
    assert result.values["map"] == pytest.approx(expected, rel=1e-4, abs=1e-7)


class Does(nn.Module):
    """A convolution, and what is done with its maps and what it was given."""

    def __init__(self, do: Callable[[Tensor, Tensor], Any]) -> None:
        super().__init__()
        self.conv, self.do = nn.Conv2d(3, 3, 3, padding=1), do

    def forward(self, images: Tensor) -> Any:
        return self.do(self.conv(images), images)


class First(nn.Module):
    """Takes the first of a pair of maps."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = Does(lambda out, _: (out, out))

    def forward(self, images: Tensor) -> Tensor:
        out: Tensor = self.parts(images)[0]
        return out


def ending_in(*modules: nn.Module) -> Callable[[], nn.Module]:
    head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 5)
    return lambda: nn.Sequential(nn.Sequential(*modules), *head)


@pytest.mark.parametrize(
    ("ending", "last"),
    [
        (ending_in(Does(torch.add)), "0.0"),
        (ending_in(Does(Tensor.add_)), "0.0"),  # the same tensor, and other values
        (ending_in(nn.Conv2d(3, 3, 3), nn.ReLU()), "0.1"),
        (ending_in(nn.Conv2d(3, 3, 3), nn.ReLU(inplace=True)), "0.1"),
        (ending_in(nn.Conv2d(3, 3, 3), nn.Dropout(), nn.Identity()), "0.0"),  # do nothing
        (ending_in(First()), "0.0"),  # nobody looks into the pair
        (lambda: nn.Sequential(nn.Conv2d(3, 5, 32), nn.Flatten()), None),  # no map has two cells
        (  # maps that are the classes are none
            lambda: nn.Sequential(
                *(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 1)),
                *(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
            ),
            "1",
        ),
    ],
)
def test_it_is_the_innermost_that_has_these_very_values(
    ending: Callable[[], nn.Module], last: str | None
) -> None:
    assert found(as_model(seeded(ending))) == last


class Twice(nn.Module):
    """One ReLU after a convolution, and after a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)
        self.relu, self.pool = nn.ReLU(), nn.MaxPool2d(2)
        self.hidden, self.last = nn.Linear(4 * 14 * 14, 6), nn.Linear(6, 5)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.pool(self.second(self.relu(self.first(images))))
        scores: Tensor = self.last(self.relu(self.hidden(maps.flatten(1))))
        return scores


class ThreeTimes(nn.Module):
    """One block that runs three times."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.block = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3, padding=1)
        self.head = nn.Linear(4, 5)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.stem(images)
        for _ in range(3):
            maps = self.block(maps).relu()
        scores: Tensor = self.head(maps.mean((2, 3)))
        return scores


class Sequence(nn.Module):
    """A convolution over the cells in a row, after one over the image."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.act, self.row = nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv1d(4, 8, 3)
        self.head = nn.Linear(8, 5)

    def forward(self, images: Tensor) -> Tensor:
        row = self.row(self.act(self.conv(images)).flatten(2))
        scores: Tensor = self.head(row.mean(2))
        return scores


class AroundAll(nn.Module):
    """A shortcut around everything, through a layer that does nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.skip, self.head = nn.Conv2d(3, 3, 1), nn.Identity(), nn.Linear(3, 5)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.conv(images) + self.skip(images)
        scores: Tensor = self.head(maps.mean((2, 3)))
        return scores


class _Block(nn.Module):
    def __init__(self, drop: nn.Module) -> None:
        super().__init__()
        self.mix, self.drop = nn.Linear(6, 6), drop

    def forward(self, tokens: Tensor) -> Tensor:
        mixed: Tensor = tokens + self.drop(self.mix(tokens))
        return mixed


class DropsEverywhere(nn.Module):
    """One dropout, for windows and for tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.mix, self.drop = nn.Conv2d(3, 6, 4, 4), nn.Linear(6, 6), nn.Dropout()
        self.first, self.second = _Block(self.drop), _Block(self.drop)
        self.head = nn.Linear(6, 5)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.conv(images)
        cells = maps.unfold(2, 2, 2).unfold(3, 2, 2).permute(0, 2, 3, 4, 5, 1).flatten(0, 2)
        windows = self.drop(self.mix(cells.flatten(1, 2))).unflatten(1, (2, 2))
        rows, columns = (side // 2 for side in maps.shape[2:])
        whole = windows.view(-1, rows, columns, 2, 2, 6).permute(0, 5, 1, 3, 2, 4)
        tokens = (whole.reshape(maps.shape) + maps).flatten(2).transpose(1, 2)
        scores: Tensor = self.head(self.drop(self.second(self.first(tokens))).mean(1))
        return scores


def test_a_module_of_two_layouts_is_told_by_each_of_its_calls() -> None:
    model = as_model(seeded(DropsEverywhere))
    trace = input_trace(model, prepare_input(model, random_input(0, 32)))
    layouts = [trace.layouts[at].order for at in trace.map_outputs["drop"]]
    assert layouts == [WINDOWS, TOKENS, TOKENS, TOKENS]
    assert found(model) == "first"
    detector = seeded(
        lambda: fasterrcnn_mobilenet_v3_large_320_fpn(
            weights=None, weights_backbone=None, num_classes=3
        )
    )
    # Of what comes behind, as its pyramid's levels, one box reads one and another one another.
    assert found(hookviz.wrap(detector), size=64) == "backbone.body.16.2"


@pytest.mark.parametrize(
    ("network", "last", "begins"),
    [
        (Twice, "pool", "pool"),  # its ReLU puts out maps before that, and none after
        (ThreeTimes, None, "block"),  # a name alone would mean the first of its calls
        (Sequence, "act", "act"),  # a row of values is no map that can lie on the image
        (AroundAll, None, "conv"),  # the sum is no module's
    ],
)
def test_a_network_that_names_them_not_has_none(
    network: Callable[[], nn.Module], last: str | None, begins: str
) -> None:
    model = as_model(seeded(network))
    assert found(model) == last
    image = random_input(0, 32)
    result = hookviz.run_lens("grad-cam", model, image)
    assert result.chosen["layer"] == begins
