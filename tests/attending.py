"""Small networks that attend, and their attention weights by plain PyTorch hooks."""

from typing import Any

import torch
from torch import Tensor, nn
from torchvision.models import VisionTransformer

import hookviz
from hookviz.types import Model, Preprocess


def assert_same(found: Tensor, own: Tensor) -> None:
    torch.testing.assert_close(found, own, atol=1e-6, rtol=0)


def vit() -> VisionTransformer:
    return VisionTransformer(
        image_size=16, patch_size=4, num_layers=3, num_heads=4, hidden_dim=16, mlp_dim=16
    )


def model_of(network: nn.Module, side: int) -> Model:
    return hookviz.wrap(network, Preprocess(resize=side, crop=side))


def plain_pass(
    network: nn.Module, image: Tensor
) -> tuple[Tensor, dict[str, tuple[Tensor, Tensor]]]:
    """What a network puts out, and what each module of it is given first and puts out."""
    seen: dict[str, tuple[Tensor, Tensor]] = {}
    network = network.eval()
    handles = []
    for name, module in network.named_modules():

        def hook(_: nn.Module, given: Any, output: Any, name: str = name) -> None:
            if given and isinstance(output, Tensor):
                seen[name] = (given[0].clone(), output.clone())

        handles.append(module.register_forward_hook(hook))
    with torch.no_grad():
        output = network(image)
    for handle in handles:
        handle.remove()
    return output, seen


def by_hand(qkv: Tensor, heads: int, bias: Tensor | float = 0.0) -> Tensor:
    """Weights from (…, tokens, 3·C), which holds queries, keys and values, each head by head."""
    query, key, _ = torch.unflatten(qkv, -1, (3, heads, -1)).unbind(-3)
    query, key = query.transpose(-2, -3), key.transpose(-2, -3)
    weights: Tensor = (query @ key.mT / query.shape[-1] ** 0.5 + bias).softmax(-1)
    return weights.detach()


def in_heads(tokens: Tensor) -> Tensor:
    """(…, tokens, 8) as (…, 2 heads, tokens, 4)."""
    return torch.unflatten(tokens, -1, (2, 4)).transpose(-2, -3)


class Patches(nn.Module):
    """Patches of an image as tokens for `mix`, and five classes from their mean."""

    def __init__(self, mix: nn.Module, width: int = 8) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.mix = mix
        self.head = nn.Linear(width, 5)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.mix(self.patches(images).flatten(2).mT)
        scores: Tensor = self.head(tokens.mean(1))
        return scores


def windows_of(maps: Tensor, side: int, shift: int) -> Tensor:
    """(H, W, C) as (windows, side², C), rolled by the shift before it is cut."""
    rolled = maps.roll((-shift, -shift), (0, 1))
    rows = torch.unflatten(torch.unflatten(rolled, 0, (-1, side)), 2, (-1, side))
    return rows.transpose(1, 2).flatten(0, 1).flatten(1, 2)
