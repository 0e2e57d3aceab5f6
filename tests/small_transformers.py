"""Tiny networks of tokens and of channels last, with random weights, for 32×32 images."""

from typing import Any

import timm
from torch import nn
from torchvision.models import SwinTransformer, VisionTransformer

import hookviz
from hookviz.types import Model, Preprocess

SIDE = 32


def vit(**options: Any) -> nn.Module:
    """4×4 patches of 8 pixels behind a class token, 24 channels, two blocks."""
    network: nn.Module = timm.create_model("vit_tiny_patch16_224", **_SMALL | options)
    return network


def deit() -> nn.Module:
    """As `vit`, with a token for distillation behind the class token."""
    network: nn.Module = timm.create_model("deit_tiny_distilled_patch16_224", **_SMALL)
    return network


_SMALL = {
    "img_size": SIDE,
    "patch_size": 8,
    "embed_dim": 24,
    "depth": 2,
    "num_heads": 3,
    "num_classes": 5,
}


def swin() -> nn.Module:
    """16×16 and 8×8 patches of 2 pixels, channels last, in windows of 4, shifted at every other."""
    network: nn.Module = timm.create_model(
        "swin_tiny_patch4_window7_224",
        img_size=SIDE,
        patch_size=2,
        window_size=4,
        embed_dim=12,
        depths=(2, 2),
        num_heads=(2, 3),
        num_classes=5,
    )
    return network


def torchvision_vit() -> nn.Module:
    """As `vit`, with scores that are not all zero."""
    network: nn.Module = VisionTransformer(SIDE, 8, 2, 3, 24, 48, num_classes=5)
    head = network.get_submodule("heads.head")
    assert isinstance(head, nn.Linear)
    nn.init.normal_(head.weight, std=0.1)
    return network


def torchvision_swin() -> nn.Module:
    """As `swin`, of torchvision's code."""
    network: nn.Module = SwinTransformer([2, 2], 12, [2, 2], [2, 3], [4, 4], num_classes=5)
    return network


def as_model(network: nn.Module) -> Model:
    """A network as a model that takes 32×32 RGB images."""
    return hookviz.wrap(network, Preprocess(resize=SIDE, crop=SIDE), output="logits")
