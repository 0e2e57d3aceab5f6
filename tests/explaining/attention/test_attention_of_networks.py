"""Attention weights of known networks, against softmax(QKᵀ/√d + bias) from plain PyTorch hooks."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import timm
import torch
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models import swin_t

import hookviz
from tests.attending import (
    Patches,
    assert_same,
    by_hand,
    model_of,
    plain_pass,
    vit,
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


def test_torchvisions_vit_attends_as_computed_by_hand() -> None:
    network, image = seeded(vit), random_input(0)
    found = hookviz.attention(as_model(network), image)
    names = [f"encoder.layers.encoder_layer_{number}.self_attention" for number in range(3)]
    assert list(found) == names
    output, seen = plain_pass(network, image)
    for name in names:
        layer = network.get_submodule(name)
        tokens = seen[name.replace("self_attention", "ln_1")][1][0]
        own = by_hand(functional.linear(tokens, layer.in_proj_weight, layer.in_proj_bias), 4)
        assert found[name].dtype == torch.float32
        assert_same(found[name], own)
    assert found.logits is not None
    assert_same(found.logits, output[0])


def test_torchvisions_swin_attends_within_its_shifted_windows() -> None:
    network, image = seeded(lambda: swin_t(weights=None)), random_input(0, 112)
    found = hookviz.attention(model_of(network, 112), image, ["features.1", "features.3.1"])
    assert list(found) == ["features.1.0.attn", "features.1.1.attn", "features.3.1.attn"]
    _, seen = plain_pass(network, image)
    for name, weights in found.items():
        layer = network.get_submodule(name)
        maps, shift = seen[name][0][0], layer.shift_size[0]
        assert shift == 3 * int(name.endswith("1.attn"))
        qkv = functional.linear(windows_of(maps, 7, shift), layer.qkv.weight, layer.qkv.bias)
        bias = layer.get_relative_position_bias() + shift_mask(len(maps), 7, shift)
        assert weights.ndim == 4
        assert_same(weights, by_hand(qkv, layer.num_heads, bias))


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "deit_tiny_distilled_patch16_224"])
def test_timms_vits_attend_so_fused_and_not(name: str, fused: bool) -> None:
    network = seeded(lambda: timm.create_model(name, img_size=64, depth=2))
    for block in network.blocks:
        assert isinstance(block.attn.fused_attn, bool)
        block.attn.fused_attn = fused
    image = random_input(0, 64)
    found = hookviz.attention(model_of(network, 64), image)
    output, seen = plain_pass(network, image)
    assert list(found) == ["blocks.0.attn", "blocks.1.attn"]
    for layer, weights in found.items():
        assert weights.shape == (3, 16 + network.num_prefix_tokens, 16 + network.num_prefix_tokens)
        own = by_hand(seen[f"{layer}.qkv"][1][0], 3)
        assert_same(weights, own)
    assert found.logits is not None
    assert_same(found.logits, output[0])


@pytest.mark.parametrize("fused", [True, False])
def test_timms_swin_attends_so_fused_and_not(fused: bool) -> None:
    network = seeded(
        lambda: timm.create_model(
            "swin_tiny_patch4_window7_224", img_size=112, depths=(2, 2), num_heads=(3, 6)
        )
    )
    for module in network.modules():
        if hasattr(module, "fused_attn"):
            module.fused_attn = fused
    image = random_input(0, 112)
    found = hookviz.attention(model_of(network, 112), image)
    _, seen = plain_pass(network, image)
    assert len(found) == 4
    for layer, weights in found.items():
        attn = network.get_submodule(layer)
        stage, shift = int(layer.split(".")[1]), 3 * int(layer.endswith("1.attn"))
        bias = attn._get_rel_pos_bias() + shift_mask((28, 14)[stage], 7, shift)
        own = by_hand(seen[f"{layer}.qkv"][1], attn.num_heads, bias)
        assert_same(weights, own)


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


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> Iterator[list[str]]:
    """Names a fused kernel of torch each time that it is called."""
    calls: list[str] = []
    function = getattr(torch, name)

    def call(*args: Any) -> Any:
        calls.append(name)
        return function(*args)

    with monkeypatch.context() as patch:
        patch.setattr(torch, name, call)
        yield calls


FAST = {
    "encoder": (encoder, "_transformer_encoder_layer_fwd", "mix.layers.0.self_attn", 2),
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
    with counted(monkeypatch, kernel) as fused:
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
