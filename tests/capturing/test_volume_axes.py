"""Layouts of networks for video: channels first of convolutions, last of a transformer's blocks."""

import pytest
import torch
from torch import Tensor, nn
from torchvision.models.video.swin_transformer import SwinTransformer3d

import hookviz
from hookviz.capturing.layer_trace import layer_trace
from hookviz.types import FIRST, LAST, Layout, Model, Preprocess
from tests.plain_hooks import every_output

CLIP = torch.randn(1, 3, 4, 32, 48, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def swin() -> Model:
    torch.manual_seed(0)
    network = SwinTransformer3d([2, 4, 4], 12, [2, 1], [2, 3], [2, 4, 4], num_classes=5)
    return hookviz.wrap(network, Preprocess(36, 32, frames=4))


def test_a_video_transformer_s_blocks_have_their_channels_last(swin: Model) -> None:
    layers = {info.name: info for info in layer_trace(swin, (3, 4, 32, 48)).every}
    truth = every_output(swin.network, CLIP)
    cap = hookviz.capture(swin, CLIP, [name for name in cap_names(layers) if truth.get(name)])
    seen_last = 0
    for activation in cap.values():
        name = activation.layer
        seen = truth[name][activation.address.call]
        assert isinstance(seen, Tensor)
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


def cap_names(layers: dict[str, hookviz.LayerInfo]) -> list[str]:
    return [name for name, info in layers.items() if info.layout in {FIRST, LAST}]


class OfOneSize(nn.Module):
    """It takes 16 × 16 alone, so that other sizes tell nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv3d(1, 2, 3, padding=1)
        self.same = nn.Identity()
        self.last = nn.Linear(2 * 4 * 16 * 16, 3)

    def forward(self, clip: Tensor) -> Tensor:
        if clip.shape[-2:] != (16, 16):
            raise ValueError("16 × 16")
        maps: Tensor = self.same(self.conv(clip) + 1)
        return self.last(maps.flatten(1))  # type: ignore[no-any-return]


def test_what_takes_one_size_lies_as_its_input() -> None:
    model = hookviz.wrap(OfOneSize(), example=(torch.zeros(1, 1, 4, 16, 16),))
    layers = {info.name: info for info in layer_trace(model, (1, 4, 16, 16)).every}
    assert layers["same"].layout == FIRST
    assert layers["same"].output_shape == (2, 4, 16, 16)


def test_channels_last_of_video_are_viewed_with_and_without_a_batch() -> None:
    layout = Layout(LAST, frames=2)
    values = torch.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5)
    assert torch.equal(layout.maps(values)[4, 1], values[1, ..., 4])
    assert torch.equal(layout.maps(values[None])[0], layout.maps(values))
    assert layout.of((2, 3, 4, 5)) == layout
    assert layout.of((3, 4, 5)).order == "vectors"
    assert Layout(LAST).of((2, 3, 4, 5)).order == "vectors"
    assert layout.map_shape((2, 3, 4, 5)) == (5, 2, 3, 4)
