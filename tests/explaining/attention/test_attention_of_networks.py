"""Attention weights of known networks, against softmax(QKᵀ/√d + bias) from plain PyTorch hooks."""

from typing import Any

import pytest
import timm
import torch
from torch import Tensor, nn
from torch.nn import functional

import hookviz
from tests.attending import (
    Patches,
    assert_same,
    by_hand,
    model_of,
    plain_pass,
    windows_of,
)
from tests.networks import as_model, random_input, seeded


def shift_mask(side: int, window: int, shift: int) -> Tensor:
    """(windows, 1, tokens, tokens): −100 between what lies on different edges of the map."""
    if not shift:
        return torch.zeros(1)
    wrapped = (torch.arange(side) + shift >= side).long()  # of places after the roll
    part = (wrapped[:, None] * 2 + wrapped)[..., None]
    part = windows_of(part, window, 0)[..., 0]
    return -100.0 * (part[:, None, :, None] != part[:, None, None, :])


TIMMS: dict[str, tuple[dict[str, Any], int]] = {
    "deit_tiny_distilled_patch16_224": ({"img_size": 64, "depth": 2}, 2),
    "swin_tiny_patch4_window7_224": ({"img_size": 112, "depths": (2, 2), "num_heads": (3, 6)}, 4),
}


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", TIMMS)
def test_timms_networks_attend_so_fused_and_not(name: str, fused: bool) -> None:
    sizes, layers = TIMMS[name]
    network, side = seeded(lambda: timm.create_model(name, **sizes)), sizes["img_size"]
    for module in network.modules():
        if hasattr(module, "fused_attn"):
            module.fused_attn = fused
    image = random_input(0, side)
    found = hookviz.attention(model_of(network, side), image)
    output, seen = plain_pass(network, image)
    assert len(found) == layers
    for layer, weights in found.items():
        attn, qkv = network.get_submodule(layer), seen[f"{layer}.qkv"][1]
        if name.startswith("deit"):
            assert_same(weights, by_hand(qkv[0], 3))
            continue
        stage, shift = int(layer.split(".")[1]), 3 * int(layer.endswith("1.attn"))
        bias = attn._get_rel_pos_bias() + shift_mask((28, 14)[stage], 7, shift)
        assert_same(weights, by_hand(qkv, attn.num_heads, bias))
    assert found.logits is not None
    assert_same(found.logits, output[0])


class SelfAttention(nn.Module):
    """`nn.MultiheadAttention` that is asked for no weights, as its fast path wants it."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        mixed: Tensor = self.attention(tokens, tokens, tokens, need_weights=False)[0]
        return mixed


class Padded(nn.Module):
    """An encoder that takes the last three of its 16 tokens for padding, and leaves them out."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = encoder()

    def forward(self, tokens: Tensor) -> Tensor:
        padding = torch.zeros(tokens.shape[:2], dtype=torch.bool, device=tokens.device)
        padding[:, 13:] = True
        mixed: Tensor = self.encoder(tokens, src_key_padding_mask=padding)
        return mixed[:, :13]


def encoder() -> nn.TransformerEncoder:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)


FAST = {
    "padded": (Padded, "_transformer_encoder_layer_fwd", "mix.encoder.layers.0.self_attn", 2),
    "attention": (SelfAttention, "_native_multi_head_attention", "mix.attention", 1),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("way", FAST)
def test_torchs_fast_paths_are_left_where_somebody_looks_and_there_alone(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mix, kernel, layer, calls = FAST[way]
    network = seeded(lambda: Patches(mix())).eval().requires_grad_(False)
    model, image = as_model(network), random_input(0)
    fused, function = list[str](), getattr(torch, kernel)

    def call(*args: Any) -> Any:
        fused.append(kernel)
        return function(*args)

    monkeypatch.setattr(torch, kernel, call)
    output = network(image)
    assert len(fused) == calls
    found = hookviz.attention(model, image)
    assert len(fused) == calls
    assert_same(model.network(image), output)
    assert len(fused) == 2 * calls
    assert len(found) == calls
    tokens = network.patches(image).flatten(2).mT[0]
    attends: Any = network.get_submodule(layer)
    bias = torch.zeros(16)
    if way == "padded":
        bias[13:] = -torch.inf
    qkv = functional.linear(tokens, attends.in_proj_weight, attends.in_proj_bias)
    assert_same(found[layer], by_hand(qkv, 2, bias))
    assert found.logits is not None
    assert_same(found.logits, output[0])
