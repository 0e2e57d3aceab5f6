"""Layouts of networks for sound and video: channels first of convolutions, last of transformers."""

import copy
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torchvision.models.video.swin_transformer import SwinTransformer3d

import hookviz
from hookviz.capturing.last_maps import last_maps
from hookviz.capturing.layer_trace import layer_trace
from hookviz.types import FIRST, LAST, Layout, Model, Preprocess
from tests.networks import seeded
from tests.plain_hooks import every_output

CLIP = torch.randn(1, 3, 4, 32, 48, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def swin() -> Model:
    torch.manual_seed(0)
    network = SwinTransformer3d([2, 4, 4], 12, [2, 1], [2, 3], [2, 4, 4], num_classes=5)
    return hookviz.wrap(network, Preprocess(36, 32, frames=4))


def test_a_video_transformer_s_blocks_have_their_channels_last(swin: Model) -> None:
    layers = {info.name: info for info in layer_trace(swin, (3, 4, 32, 48)).every}
    truth = every_output(copy.deepcopy(swin.network).eval(), CLIP)
    names = [name for name, info in layers.items() if info.layout in {FIRST, LAST}]
    cap = hookviz.capture(swin, CLIP, [name for name in names if truth.get(name)])
    seen_last = 0
    for activation in cap.values():
        name = activation.layer
        seen: Any = truth[name][activation.address.call]
        assert torch.equal(activation.raw, seen[0])
        if layers[name].layout == LAST:
            assert torch.equal(activation.values, seen[0].permute(3, 0, 1, 2)), name
            assert layers[name].output_shape[0] == seen.shape[-1]
            seen_last += 1
    assert seen_last > 30
    assert layers["patch_embed.proj"].layout == FIRST
    assert layers["features.0.0"].output_shape == (12, 2, 8, 12)
    assert layers["features.0.0.mlp.1"].layout == LAST  # GELU
    assert layers["features.1.reduction"].output_shape == (24, 2, 4, 6)


def test_what_takes_one_size_lies_as_its_input() -> None:
    layers = (nn.Conv3d(1, 2, 3, padding=1), nn.Identity(), nn.Flatten(), nn.Linear(2048, 3))
    model = hookviz.wrap(nn.Sequential(*layers), example=(torch.zeros(1, 1, 4, 16, 16),))
    same = next(info for info in layer_trace(model, (1, 4, 16, 16)).every if info.name == "1")
    assert (same.layout, same.output_shape) == (FIRST, (2, 4, 16, 16))


def test_channels_last_of_video_are_viewed_with_and_without_a_batch() -> None:
    layout = Layout(LAST, frames=2)
    values = torch.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5)
    assert torch.equal(layout.maps(values)[4, 1], values[1, ..., 4])
    assert torch.equal(layout.maps(values[None])[0], layout.maps(values))
    assert layout.of((2, 3, 4, 5)) == layout
    assert layout.of((3, 4, 5)).order == "vectors"
    assert Layout(LAST).of((2, 3, 4, 5)).order == "vectors"
    assert layout.map_shape((2, 3, 4, 5)) == (5, 2, 3, 4)


WIDTH, LENGTH = 4, 64


def _turned(x: Tensor) -> Tensor:
    return x.transpose(1, 2)


SOUND: dict[str, Callable[[], nn.Module]] = {
    "conv": lambda: nn.Conv1d(WIDTH, WIDTH, 5, padding=2),
    "strided conv": lambda: nn.Conv1d(WIDTH, WIDTH, 3, stride=2),
    "conv and gelu": lambda: nn.Sequential(nn.Conv1d(WIDTH, WIDTH, 3), nn.GELU()),
    "transposed conv": lambda: nn.ConvTranspose1d(WIDTH, WIDTH, 3),
    "batch norm": lambda: nn.BatchNorm1d(WIDTH),
    "group norm": lambda: nn.GroupNorm(2, WIDTH),
    "pool": lambda: nn.MaxPool1d(2, 1),
    "identity": nn.Identity,
    "dropout": nn.Dropout,
}
OVER_STEPS: dict[str, Callable[[], nn.Module]] = {
    "linear": lambda: nn.Linear(WIDTH, WIDTH),
    "layer norm": lambda: nn.LayerNorm(WIDTH),
    "gelu": nn.GELU,
    "identity of steps": nn.Identity,
    "linear and gelu": lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()),
    "encoder": lambda: nn.TransformerEncoderLayer(WIDTH, 2, 8, batch_first=True),
    "recurrence": lambda: nn.GRU(WIDTH, WIDTH, batch_first=True),
}


class Sound(nn.Module):
    """A random chain over ``(N, C, L)`` and ``(N, L, C)``, which may take one length alone."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self.stem = nn.Conv1d(2, WIDTH, 7, 2)
        names = random.choices([*SOUND, *OVER_STEPS, *OVER_STEPS], k=random.randint(2, 6))
        self.over_steps = [name in OVER_STEPS for name in names]
        self.chain = nn.ModuleList((SOUND | OVER_STEPS)[name]() for name in names)
        self.head = nn.Linear(WIDTH, 5)
        self.length = LENGTH if random.randrange(3) == 0 else None

    def forward(self, sound: Tensor) -> Tensor:
        if self.length not in (None, sound.shape[2]):
            raise ValueError(f"{self.length} alone")
        x = self.stem(sound)
        for over_steps, layer in zip(self.over_steps, self.chain, strict=True):
            steps = layer(_turned(x) if over_steps else x)
            steps = steps[0] if isinstance(layer, nn.GRU) else steps
            x = _turned(steps) if over_steps else steps
        scores: Tensor = self.head(x.mean(2))
        return scores


def _sound(seed: int) -> tuple[Model, Tensor]:
    network = seeded(lambda: Sound(Random(seed))).eval()
    sound = torch.randn(1, 2, LENGTH, generator=torch.Generator().manual_seed(seed))
    return hookviz.wrap(network, example=(sound,)), sound


def _shapes(values: dict[str, list[object]]) -> Iterator[tuple[str, torch.Size]]:
    for name, outputs in values.items():
        if isinstance(outputs[0], Tensor):
            yield name, outputs[0].shape


@pytest.mark.parametrize("seed", range(40))
def test_a_random_network_of_sound_lies_as_two_lengths_tell(seed: int) -> None:
    model, sound = _sound(seed)
    network = copy.deepcopy(model.network)
    truth = every_output(network, sound)
    assert isinstance(network, Sound)
    network.length = None
    longer = dict(_shapes(every_output(network, torch.zeros(1, 2, 2 * LENGTH))))
    layers = {info.name: info for info in layer_trace(model, (2, LENGTH)).every}
    cap = hookviz.capture(model, sound, list(layers))
    for name, shape in _shapes(truth):
        if name not in layers:
            continue
        value: Any = truth[name][0]
        assert torch.equal(cap[name].raw, value[0])
        over_steps = len(shape) == 3 and longer[name][1] > shape[1]
        if layers[name].layout == FIRST:
            assert not over_steps, name
            assert torch.equal(cap[name].values, value[0])
            assert layers[name].output_shape == shape[1:]
    last_maps(layer_trace(model, (2, LENGTH)), layers)


def test_layers_over_steps_are_unknown_and_those_over_channels_are_not() -> None:
    class Turns(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Sequential(nn.Conv1d(2, 6, 5, 2), nn.GELU())
            self.same, self.norm, self.mix = nn.Identity(), nn.LayerNorm(6), nn.Linear(6, 6)
            self.back, self.sum = nn.Conv1d(6, 4, 3), nn.Identity()

        def forward(self, sound: Tensor) -> Tensor:
            steps = self.mix(self.norm(self.same(_turned(self.conv(sound)))))
            maps = self.back(_turned(steps))
            last: Tensor = self.sum(torch.cat([maps, maps], 1))
            return last.mean(2)

    model = hookviz.wrap(seeded(Turns), example=(torch.zeros(1, 2, 64),))
    layouts = {info.name: info.layout for info in layer_trace(model, (2, 64)).every}
    unknown = dict.fromkeys(("same", "norm", "mix"), "unknown")
    first = dict.fromkeys(("conv", "conv.0", "conv.1", "back", "sum"), FIRST)
    assert layouts == unknown | first
