from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.capturing.inputs import own_shape
from hookviz.models.guessing import search_input, stated_input
from hookviz.types import Model
from tests.networks import seeded


def rgb(side: int = 224) -> hookviz.Preprocess:
    return hookviz.Preprocess(resize=256 if side == 224 else side, crop=side)


def looked_at(network: nn.Module) -> Model:
    """The network as a model whose input the first look has tried."""
    model = hookviz.wrap(network)
    own_shape(model)
    assert not model.is_guessed
    return model


class States(nn.Module):
    """It says which input it takes, and can't be run."""

    def __init__(self, **said: object) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        for name, value in said.items():
            setattr(self, name, value)

    def forward(self, _: Tensor) -> Tensor:
        raise LookupError


def test_what_a_network_states_is_read_and_nothing_is_run() -> None:
    own = {"input_size": (3, 40, 40), "mean": (0.1,) * 3, "std": (0.2,) * 3, "crop_pct": 0.8}
    of_timm = stated_input(States(pretrained_cfg={**own, "interpolation": "bicubic"}))
    assert of_timm.preprocess == hookviz.Preprocess(
        resize=50, crop=40, mean=(0.1,) * 3, std=(0.2,) * 3, interpolation="bicubic"
    )
    assert stated_input(States(config=SimpleNamespace(image_size=96))).preprocess == rgb(96)
    vision = SimpleNamespace(image_size=[32, 48], num_channels=1)
    oblong = stated_input(States(config=SimpleNamespace(vision_config=vision)))
    assert (oblong.shape, oblong.preprocess.mean) == ((1, 32, 48), (0.5,))
    assert stated_input(States()).preprocess == rgb()
    assert stated_input(nn.Sequential(nn.Linear(3, 2))).preprocess == rgb()
    assert stated_input(nn.Sequential(nn.Conv2d(1, 2, 3))).preprocess.mean == (0.5,)
    assert stated_input(nn.Sequential(nn.Conv1d(2, 4, 9))).shape == (2, 16_000)
    assert stated_input(nn.Sequential(nn.Conv3d(1, 4, 3))).shape == (1, 16, 112, 112)


class Views(nn.Module):
    """At 224 pixels it takes one image for 49; it wants 32."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.MaxPool2d(8))
        self.head = nn.Linear(8 * 4 * 4, 5)

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.head(self.convs(images).view(-1, 8 * 4 * 4))
        return scores


def test_a_size_that_makes_several_rows_of_one_image_is_not_taken() -> None:
    network = seeded(Views).train()
    state = torch.get_rng_state()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    assert looked_at(network).preprocess == rgb(32)
    # The search changes nothing in the network.
    assert all(module.training for module in network.modules())
    assert all(torch.equal(before[name], each) for name, each in network.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    # Of 224 pixels and three channels it makes 192 rows, of 28 grey ones a single one.
    rows = nn.Sequential(nn.Flatten(0), nn.Unflatten(0, (-1, 784)), nn.Linear(784, 10))
    assert own_shape(hookviz.wrap(rows)) == (1, 28, 28)


def of_one_size(kind: torch.dtype) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.Flatten(), nn.Linear(4 * 24 * 24, 2)
    ).to(kind)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_a_network_is_probed_in_its_own_precision(kind: torch.dtype) -> None:
    assert looked_at(of_one_size(kind)).preprocess == rgb(48)


class RunsAnother(nn.Sequential):
    """The conv that is declared first takes features."""

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self[0](self[1](images))
        return features


@pytest.mark.parametrize(
    "network",
    [
        RunsAnother(nn.Conv2d(8, 4, 3), nn.Conv2d(3, 8, 3)),
        nn.Sequential(nn.PixelUnshuffle(2), nn.Conv2d(12, 4, 3)),
    ],
)
def test_channels_are_those_of_the_image(network: nn.Module) -> None:
    assert looked_at(network).preprocess == rgb()


class Looks(nn.Module):
    """It looks at a value, which a pass over shapes alone does not have."""

    def __init__(self, side: int, look: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.other = nn.Conv2d(8, 4, 3)
        self.conv = nn.Conv2d(3, 8, 3)
        self.head = nn.Linear(4 * (side - 4) ** 2, 2)
        self.look = look

    def forward(self, images: Tensor) -> Tensor:
        self.look(images)
        scores: Tensor = self.head(self.other(self.conv(images)).flatten(1))
        return scores


def below_ten(images: Tensor) -> None:
    assert (images < 10).all()


@pytest.mark.parametrize("look", [below_ten, lambda images: images.mean().item()])
def test_a_network_that_looks_at_values_is_probed_with_some(
    look: Callable[[Tensor], object],
) -> None:
    assert looked_at(seeded(lambda: Looks(32, look))).preprocess == rgb(32)


def test_a_network_without_a_conv_is_told_by_its_size() -> None:
    for side in (28, 40):
        digits = nn.Sequential(nn.Flatten(), nn.Linear(side * side, 10))
        assert looked_at(digits).preprocess == hookviz.Preprocess(
            resize=side, crop=side, mean=(0.5,), std=(0.5,)
        )
    # 28 pixels go through as well as 32 do, which colours have.
    layers = (nn.Conv2d(3, 4, 5), nn.MaxPool2d(12), nn.Flatten(), nn.Linear(16, 10))
    assert looked_at(nn.Sequential(*layers)).preprocess == rgb(32)
    never = looked_at(nn.Sequential(nn.Linear(7, 7)))
    assert never.preprocess == rgb()
    assert search_input(never) is None


class Article(nn.Module):
    """As in many articles: its only linear layers take the maps of one size."""

    def __init__(self, channels: int, numbers: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 4, 3)
        self.conv2 = nn.Conv2d(4, 8, 3)
        self.fc1 = nn.Linear(numbers, 6)
        self.fc2 = nn.Linear(6, 3)

    def forward(self, images: Tensor) -> Tensor:
        maps = nn.functional.relu(self.conv2(torch.relu(self.conv1(images))))
        maps = nn.functional.max_pool2d(maps, 2).flatten(1)
        scores: Tensor = self.fc2(self.fc1(maps).relu())
        return scores


@pytest.mark.parametrize(("channels", "side"), [(1, 28), (1, 100), (3, 42), (3, 300), (2, 36)])
def test_a_size_that_is_not_usual_is_searched(channels: int, side: int) -> None:
    network = seeded(lambda: Article(channels, 8 * ((side - 4) // 2) ** 2)).eval()
    assert own_shape(hookviz.wrap(network)) == (channels, side, side)
