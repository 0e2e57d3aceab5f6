"""Twenty small networks of different kinds, each with an input: pictures, sound, volumes, clips."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision.models import detection
from torchvision.ops import MultiScaleRoIAlign

import hookviz
from tests.networks import seeded


class _Network(nn.Module):
    """Network with convolutions of these channels in two dimensions, and a head over their mean."""

    def __init__(self, *channels: int, classes: int = 3) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels[0], channels[1], 3, padding=1)
        self.second = nn.Conv2d(channels[1], channels[-1], 3, 2)
        self.head = nn.Linear(channels[-1], classes)

    def maps(self, images: Tensor) -> Tensor:
        return F.relu(self.second(F.relu(self.first(images))))


class Spectrogram(_Network):
    """Sound, ``(N, 1, L)``, of which the network makes its own picture."""

    def __init__(self) -> None:
        super().__init__(1, 4, 6)

    def forward(self, sound: Tensor) -> Tensor:
        window = torch.hann_window(64, device=sound.device)
        bins = torch.stft(sound[:, 0], 64, 16, window=window, return_complex=True).abs()
        scores: Tensor = self.head(self.maps(bins[:, None].log1p()).mean((2, 3)))
        return scores


class FoldedFrames(_Network):
    """Clips, ``(N, C, T, H, W)``, whose frames are a batch."""

    def __init__(self) -> None:
        super().__init__(3, 4, 6)

    def forward(self, clips: Tensor) -> Tensor:
        frames = clips.transpose(1, 2)
        maps = self.maps(frames.flatten(0, 1)).mean((2, 3))
        scores: Tensor = self.head(maps.reshape(*frames.shape[:2], -1).mean(1))
        return scores


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.middle = nn.Conv2d(3, 4, 3, 2, 1), nn.Conv2d(4, 4, 3, 1, 1)
        self.up, self.out = nn.ConvTranspose2d(4, 4, 2, 2), nn.Conv2d(7, 2, 1)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.up(F.relu(self.middle(F.relu(self.down(images)))))
        scores: Tensor = self.out(torch.cat([maps, images], 1))
        return scores


class Tokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch, self.place = nn.Conv2d(3, 16, 8, 8), nn.Parameter(torch.randn(1, 16, 16))
        block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.blocks = nn.TransformerEncoder(block, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 5)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.patch(images).flatten(2).mT + self.place
        scores: Tensor = self.head(self.blocks(tokens).mean(1))
        return scores


class Recurrent(nn.Module):
    """Rows of digits, read by an LSTM or a GRU behind a convolution, or without."""

    def __init__(self, kind: type[nn.LSTM | nn.GRU], *, conv: bool) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, 2, 1) if conv else nn.Identity()
        self.memory = kind(32 if conv else 16, 12, batch_first=True)
        self.head = nn.Linear(12, 5)

    def forward(self, images: Tensor) -> Tensor:
        rows = self.conv(images).transpose(1, 2).flatten(2)
        scores: Tensor = self.head(self.memory(rows)[0][:, -1])
        return scores


class TwoInputs(_Network):
    def __init__(self) -> None:
        super().__init__(3, 4, 6)
        self.about = nn.Linear(5, 6)

    def forward(self, images: Tensor, about: Tensor) -> Tensor:
        scores: Tensor = self.head(self.maps(images).mean((2, 3)) + self.about(about))
        return scores


class ChannelsLast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch, self.norm = nn.Conv2d(3, 8, 4, 4), nn.LayerNorm(8)
        self.mix, self.head = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.patch(images).permute(0, 2, 3, 1)
        scores: Tensor = self.head((maps + F.gelu(self.mix(self.norm(maps)))).mean((1, 2)))
        return scores


class Embedding(_Network):
    def __init__(self) -> None:
        super().__init__(3, 4, 6, classes=16)

    def forward(self, images: Tensor) -> Tensor:
        return F.normalize(self.head(self.maps(images).mean((2, 3))), dim=1)


class Dictionary(_Network):
    def __init__(self) -> None:
        super().__init__(3, 4, 6)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        vector = self.maps(images).mean((2, 3))
        return {"vector": vector, "scores": self.head(vector)}


class Detached(_Network):
    def __init__(self) -> None:
        super().__init__(3, 4, 6)

    def forward(self, images: Tensor) -> Tensor:
        maps = F.relu(self.second(F.relu(self.first(images)).detach()))
        scores: Tensor = self.head(maps.mean((2, 3)))
        return scores


class OfOneSize(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 4, 3, 2, 1), nn.Linear(4 * 16 * 16, 3)

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.head(F.relu(self.conv(images)).flatten(1))
        return scores


class WithNorm(nn.Module):
    """One value per channel goes into a norm."""

    def __init__(self, norm: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.conv, self.pool = nn.Conv2d(3, 4, 3, 2), nn.AdaptiveAvgPool2d(1)
        self.norm, self.head = norm(), nn.Linear(4, 3)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.pool(self.conv(images))
        normed = self.norm(maps if isinstance(self.norm, nn.InstanceNorm2d) else maps.flatten(1))
        scores: Tensor = self.head(normed.flatten(1))
        return scores


def small_detector() -> nn.Module:
    """Torchvision's detector around one convolution."""
    backbone: Any = nn.Sequential(nn.Conv2d(3, 8, 3, stride=8), nn.ReLU())
    backbone.out_channels = 8
    anchors = detection.rpn.AnchorGenerator(((16, 32),), ((1.0,),))
    pool = MultiScaleRoIAlign(["0"], 3, 1)
    sizes: dict[str, Any] = {"min_size": 64, "max_size": 64}
    network: nn.Module = detection.FasterRCNN(
        backbone, 3, rpn_anchor_generator=anchors, box_roi_pool=pool, **sizes
    )
    return network


@dataclass(frozen=True)
class Kind:
    """A network, the shape of its input, and how it is wrapped."""

    build: Callable[[], nn.Module]
    shape: tuple[int, ...]
    more: tuple[Tensor, ...] | None = None
    train: bool = False

    def made(self, name: str) -> tuple[hookviz.Model, Tensor]:
        """Return the model and an input."""
        network = seeded(self.build).train(self.train)
        image = torch.rand(1, *self.shape, generator=torch.Generator().manual_seed(3))
        example = None if self.more is None else (image, *self.more)
        return hookviz.wrap(network, name=name, example=example, train=self.train), image


def _pooled(conv: Callable[..., nn.Module], pool: nn.Module, channels: int) -> nn.Module:
    body = (conv(channels, 4, 3), nn.ReLU(), conv(4, 6, 3), nn.ReLU())
    return nn.Sequential(*body, pool, nn.Flatten(), nn.Linear(6, 3))


KINDS: dict[str, Kind] = {
    "plain": Kind(lambda: _pooled(nn.Conv2d, nn.AdaptiveAvgPool2d(1), 3), (3, 32, 32)),
    "grey": Kind(lambda: _pooled(nn.Conv2d, nn.AdaptiveAvgPool2d(1), 1), (1, 28, 28)),
    "tokens": Kind(Tokens, (3, 32, 32)),
    "sound": Kind(lambda: _pooled(nn.Conv1d, nn.AdaptiveAvgPool1d(1), 2), (2, 128)),
    "spectrogram": Kind(Spectrogram, (1, 1024), ()),
    "volume": Kind(lambda: _pooled(nn.Conv3d, nn.AdaptiveAvgPool3d(1), 1), (1, 8, 10, 12)),
    "frames": Kind(FoldedFrames, (3, 4, 16, 16), ()),
    "LSTM": Kind(lambda: Recurrent(nn.LSTM, conv=True), (1, 16, 16), ()),
    "GRU": Kind(lambda: Recurrent(nn.GRU, conv=False), (1, 16, 16), ()),
    "U-Net": Kind(UNet, (3, 32, 32)),
    "detector": Kind(small_detector, (3, 64, 64)),
    "embedding": Kind(Embedding, (3, 24, 24)),
    "two inputs": Kind(TwoInputs, (3, 16, 16), (torch.rand(1, 5),)),
    "no conv": Kind(
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(768, 8), nn.ReLU(), nn.Linear(8, 5)),
        (3, 16, 16),
    ),
    "channels last": Kind(ChannelsLast, (3, 32, 32)),
    "dictionary": Kind(Dictionary, (3, 24, 24)),
    "detached": Kind(Detached, (3, 24, 24)),
    "of one size": Kind(OfOneSize, (3, 32, 32)),
    "batch norm": Kind(lambda: WithNorm(lambda: nn.BatchNorm1d(4)), (3, 24, 24), train=True),
    "instance norm": Kind(lambda: WithNorm(lambda: nn.InstanceNorm2d(4)), (3, 24, 24)),
    "conv alone": Kind(lambda: nn.Conv2d(3, 4, 3), (3, 16, 16)),
}
NOT_IMAGES = ("sound", "spectrogram", "volume", "frames")
