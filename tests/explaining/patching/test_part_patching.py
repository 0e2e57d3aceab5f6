"""Patching of attention heads, held against the input of the output projection by plain hooks."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.errors import ModelError, SettingError
from tests.networks import Tiny, as_model, hook_count, random_input, seeded
from tests.small_transformers import SIDE, torchvision_swin, torchvision_vit, vit

TARGET = 2


def inputs_of(network: nn.Module, projection: str, image: Tensor) -> tuple[Tensor, Tensor]:
    """What a projection is given, and the target, with a graph."""
    kept: list[Tensor] = []
    handle = network.get_submodule(projection).register_forward_pre_hook(
        lambda _module, args: kept.append(args[0])
    )
    score = network(image)[0, TARGET]
    handle.remove()
    return kept[0], score


def by_hand(
    network: nn.Module, projection: str, images: tuple[Tensor, Tensor], heads: int
) -> tuple[list[float], list[float]]:
    """The share of each head and its estimate: each is some columns of the projection's input."""
    clean, high = inputs_of(network, projection, images[0])
    corrupted, low = inputs_of(network, projection, images[1])
    gradient = torch.autograd.grad(low, corrupted)[0]
    shares, direct = [], []
    for columns in torch.arange(clean.shape[-1]).chunk(heads):

        def patch(_module: nn.Module, args: Any, columns: Tensor = columns) -> tuple[Tensor]:
            patched = args[0].clone()
            patched[..., columns] = clean[..., columns]
            return (patched,)

        handle = network.get_submodule(projection).register_forward_pre_hook(patch)
        patched = network(images[1])[0, TARGET]
        handle.remove()
        effect = (gradient * (clean - corrupted))[..., columns].sum()
        shares.append(((patched - low) / (high - low)).item())
        direct.append((effect / (high - low)).item())
    return shares, direct


def test_shares_of_heads_are_what_plain_hooks_compute() -> None:
    network = seeded(vit).eval().double()
    images = random_input(0, SIDE).double(), random_input(1, SIDE).double()
    told: list[float] = []
    found = hookviz.patch(
        as_model(network),
        *(image[0] for image in images),
        target=TARGET,
        by="head",
        progress=told.append,
    )
    assert list(found.shares) == ["blocks.0.attn", "blocks.1.attn"]
    for layer in found.shares:
        shares, direct = by_hand(network, f"{layer}.proj", images, 3)
        np.testing.assert_allclose(found.shares[layer], shares, atol=1e-6)
        np.testing.assert_allclose(found.direct[layer], direct, atol=1e-6)
    assert np.abs(found.shares["blocks.1.attn"]).max() > 1e-4
    assert (told, told[-1], hook_count(network)) == (sorted(told), 1, 0)
    assert found.table()[4].part == (1,)
    rows, _ = found.figure().axes
    assert [text.get_text() for text in rows.get_yticklabels()] == list(found.shares)


@pytest.mark.parametrize("build", [torchvision_vit, torchvision_swin])
def test_all_heads_of_a_block_are_patched_where_torch_attends(build: Any) -> None:
    network = seeded(build).eval()
    block = "encoder.layers.encoder_layer_1" if build is torchvision_vit else "features.1.1"
    found = hookviz.patch(
        as_model(network), random_input(0, SIDE)[0], random_input(1, SIDE)[0], block, by="head"
    )
    (layer,) = found.shares
    assert layer.startswith(block)
    assert np.isfinite(found.direct[layer]).all()
    assert np.abs(found.shares[layer]).max() > 1e-4


def test_a_layer_or_a_network_without_heads_is_refused() -> None:
    images = random_input(0)[0], random_input(1)[0]
    with pytest.raises(ModelError, match="Tiny computes no attention"):
        hookviz.patch(as_model(seeded(Tiny)), *images, by="head")
    images = random_input(0, SIDE)[0], random_input(1, SIDE)[0]
    model = as_model(seeded(vit))
    for layers in ("blocks.0.mlp", ["blocks.0.attn", "blocks.0.mlp"], "blocks.0.mlp*"):
        with pytest.raises(SettingError, match=r"Nothing attends in 'blocks\.0\.mlp"):
            hookviz.patch(model, *images, layers, by="head")
