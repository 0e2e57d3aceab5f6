"""Tiny networks with random weights whose layers put out tokens, or have their channels last.

No map is square but for torchvision's ViT, which takes no other: rows are not taken for columns.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torchvision.models import convnext, swin_transformer

import hookviz
from hookviz.types import Model, Preprocess
from tests.attending import vit
from tests.networks import seeded


@dataclass(frozen=True)
class TokenNetwork:
    """A network, what it takes, and where some of its layers have their maps.

    Attributes:
        build: makes the network.
        layers: some layers that put out tokens or have their channels last.
        convs: a layer that has its channels first.
        prefix: how many of their tokens stand for no patch.
        size: rows and columns of its input.
        grid: rows and columns of their maps.
    """

    build: Callable[[], nn.Module] = field(repr=False)
    layers: tuple[str, ...]
    convs: str
    prefix: int = 0
    size: tuple[int, int] = (16, 24)
    grid: tuple[int, int] = (4, 6)

    def model(self) -> Model:
        """The network as a model, with weights that are the same each time."""
        network = seeded(self.build).eval()
        draws = torch.Generator().manual_seed(3)
        with torch.no_grad():
            for parameter in network.parameters():  # of which many begin at 0, or close to it
                parameter.add_(torch.randn(parameter.shape, generator=draws), alpha=0.3)
        return hookviz.wrap(network, Preprocess(resize=min(self.size), crop=min(self.size)))

    def image(self, seed: int = 0) -> Tensor:
        """What it takes, ``(1, 3, H, W)``."""
        return torch.randn(1, 3, *self.size, generator=torch.Generator().manual_seed(seed))

    def maps(self, found: Tensor) -> Tensor:
        """The maps in what one of `layers` put out, ``(N, C, H, W)``, cut out by hand."""
        if found.ndim == 4:
            return found.permute(0, 3, 1, 2)
        found = found[:, self.prefix :]
        return found.reshape(len(found), *self.grid, -1).permute(0, 3, 1, 2)


def _timm(name: str, **options: Any) -> nn.Module:
    import timm  # noqa: PLC0415 - takes a second

    made: nn.Module = timm.create_model(name, num_classes=5, **options)
    return made


_VIT: dict[str, Any] = {"img_size": (16, 24), "patch_size": 4, "embed_dim": 8}
_VIT |= {"depth": 2, "num_heads": 2}


def _swin() -> nn.Module:
    network: nn.Module = swin_transformer.SwinTransformer(
        [4, 4], 8, [2], [1], [2, 2], num_classes=5
    )
    return network


def _convnext() -> nn.Module:
    settings = [convnext.CNBlockConfig(8, 12, 1), convnext.CNBlockConfig(12, None, 1)]
    network: nn.Module = convnext.ConvNeXt(settings, layer_scale=1.0, num_classes=5)
    return network


_BLOCK = ("blocks.0.norm1", "blocks.0.mlp.fc1", "blocks.1.norm1")
_SWIN: dict[str, Any] = {"img_size": (16, 24), "window_size": 2, "embed_dim": 8}
_SWIN |= {"depths": (2,), "num_heads": (2,)}

TOKEN_NETWORKS = {
    "timm's ViT": TokenNetwork(
        partial(_timm, "vit_tiny_patch16_224", **_VIT), _BLOCK, "patch_embed.proj", prefix=1
    ),
    "timm's DeiT": TokenNetwork(
        partial(_timm, "deit_tiny_distilled_patch16_224", **_VIT),
        _BLOCK,
        "patch_embed.proj",
        prefix=2,
    ),
    "torchvision's ViT": TokenNetwork(
        vit,
        tuple(f"encoder.layers.encoder_layer_{layer}" for layer in ("0.ln_1", "1.mlp.0", "2.ln_1")),
        "conv_proj",
        prefix=1,
        size=(16, 16),
        grid=(4, 4),
    ),
    "timm's Swin": TokenNetwork(
        partial(_timm, "swin_tiny_patch4_window7_224", **_SWIN),
        tuple(f"layers.0.{layer}" for layer in _BLOCK),
        "patch_embed.proj",
    ),
    "torchvision's Swin": TokenNetwork(
        _swin,
        ("features.1.0.norm1", "features.1.0.mlp.0", "features.1.1.norm1"),
        "features.0.0",
    ),
    "ConvNeXt": TokenNetwork(
        _convnext,
        tuple(f"features.1.0.block.{number}" for number in (2, 3, 5)),
        "features.0.0",
    ),
}
