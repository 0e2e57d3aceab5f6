"""Silent channels against plain PyTorch, and against the ablation lens."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

import hookviz
from hookviz.drawing.panels import GridPanel
from hookviz.errors import HookVizError
from hookviz.explaining.patching.channel_mask import (
    ChannelMask,
    copied_bytes,
    mask_channels,
    read_channel_mask,
)
from hookviz.images.samples import samples
from tests.networks import as_model, plain_network, seeded


def by_hand(network: nn.Module, layer: str, channels: list[int], images: Tensor) -> list[Tensor]:
    """What the layer and the network put out if a plain hook writes 0 into the channels."""
    seen: list[Tensor] = []

    def write(_module: nn.Module, _given: tuple[Tensor], output: Tensor) -> Tensor:
        output = output.clone()
        output[:, channels] = 0
        seen.append(output.clone())
        return output

    handle = network.get_submodule(layer).register_forward_hook(write)
    try:
        with torch.inference_mode():
            return [network(images), *seen]
    finally:
        handle.remove()


@pytest.mark.parametrize(
    ("name", "layer", "channels"),
    [
        ("squeezenet", "features.3.squeeze", (0, 5)),  # it has biases
        ("shapesnet", "stage1.first.conv", (3, 4, 47)),  # a batch norm follows
    ],
)
def test_it_computes_what_the_ablation_lens_shows(
    name: str, layer: str, channels: tuple[int, ...]
) -> None:
    model = hookviz.load_model(name)
    silent = mask_channels(model, ChannelMask(layer, channels))
    after = hookviz.capture(silent, samples()[0].path, logits=True)
    network = hookviz.load_model(name, "pretrained").network
    scores, maps = by_hand(network, layer, list(channels), after.input)
    assert torch.equal(after[layer].values, maps[0])
    assert after.logits is not None
    assert torch.allclose(after.logits, scores[0], rtol=0, atol=1e-6 * float(scores.abs().max()))
    lens = hookviz.run_lens(
        "ablate", model, samples()[0].path, layer=layer, channels=channels, mode="switch off"
    )
    assert np.array_equal(lens.values["after"], after[layer].values.numpy())
    following = [panel.layer for panel in lens.panels if isinstance(panel, GridPanel)][-1]
    assert following != layer
    assert np.allclose(lens.values["downstream_after"], after[following].values, atol=1e-6)
    assert not np.allclose(lens.values["downstream_before"], after[following].values, atol=1e-3)


def test_it_is_another_model_around_the_same_tensors() -> None:
    model = hookviz.load_model("shapesnet")
    before = {name: each.clone() for name, each in model.network.state_dict().items()}
    one = mask_channels(model, ChannelMask("stage1.first.conv", (3, 4)))
    other = mask_channels(model, ChannelMask("stage1.first.conv", (3, 5)))
    assert len({model.digest, one.digest, other.digest}) == 3
    assert one.digest == mask_channels(model, ChannelMask("stage1.first.conv", (3, 4))).digest
    assert one.title == "ShapesNet without 2 channels of stage1.first.conv"
    assert one.weights == "pretrained, without stage1.first.conv:3-4"
    shared, tensors = model.network.state_dict(), one.network.state_dict()
    copied = {name for name in tensors if tensors[name].data_ptr() != shared[name].data_ptr()}
    assert copied == {"stage1.first.conv.weight"}
    assert copied_bytes(model, ChannelMask("stage1.first.conv", (3,))) == sum(
        tensors[name].nbytes for name in copied
    )
    assert all(torch.equal(value, before[name]) for name, value in shared.items())
    assert not any(each.requires_grad for each in one.network.parameters())


@pytest.mark.parametrize("groups", [1, 2])
def test_channels_of_a_transposed_convolution(groups: int) -> None:
    network = seeded(lambda: nn.Sequential(nn.ConvTranspose2d(4, 6, 3, groups=groups)))
    model = as_model(network)
    images = torch.rand(1, 4, 8, 8)
    silent = plain_network(mask_channels(model, ChannelMask("0", (1, 4))))
    expected, _ = by_hand(network, "0", [1, 4], images)
    assert torch.equal(silent(images), expected)


class Tied(nn.Module):
    """Two layers around one tensor of weights, and one whose weights are computed."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 3, 3), nn.Conv2d(3, 3, 3)
        self.b.weight = self.a.weight
        self.norm = parametrizations.weight_norm(nn.Conv2d(3, 3, 3))
        self.act = nn.ReLU()

    def forward(self, images: Tensor) -> Tensor:
        result: Tensor = self.act(self.norm(self.b(self.a(images))))
        return result


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("a:0", "in common with b"),
        ("norm:0", "computed anew at each pass"),
        ("act:0", "is a ReLU, and channels are silenced in a conv layer"),
        ("nona:0", "no conv layer called 'nona'"),
        ("a:3", "has no channel 3: its channels are 0 to 2"),
    ],
)
def test_what_can_not_fall_silent_says_why(asked: str, says: str) -> None:
    model = as_model(Tied())
    with pytest.raises(HookVizError, match=says):
        mask_channels(model, read_channel_mask(asked))


@pytest.mark.parametrize(
    "text",
    ["", "conv", "conv:", ":1", "conv:x", "conv:-1", "conv:3-1", "conv:0-99999", "c" * 999 + ":1"],
)
def test_a_text_is_written_as_it_is_read_and_one_that_names_no_channels_is_refused(
    text: str,
) -> None:
    with pytest.raises(hookviz.SettingError, match="names no channels of a layer"):
        read_channel_mask(text)
    for written in ("stem.first.conv:0,3-7", "a:b:12", "conv:0-1"):
        assert str(read_channel_mask(written)) == written
    assert read_channel_mask("conv: 7, 3-4, 4").channels == (3, 4, 7)
