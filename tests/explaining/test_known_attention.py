"""Rollout and gradient rollout of attention, against their papers' formulas by hand."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.explaining.known_attention import Attention
from hookviz.types import Model
from tests.attending import assert_same, plain_pass, vit
from tests.networks import as_model, random_input, seeded


def test_rollout_is_that_of_abnar_and_zuidema() -> None:
    found = hookviz.attention(as_model(seeded(vit)), random_input(0))
    flow = np.eye(17)
    for weights in found.values():
        raw = np.mean([head.numpy() for head in weights], axis=0, dtype=np.float64)
        residual = raw + np.eye(17)
        flow = residual / residual.sum(axis=-1, keepdims=True) @ flow
    rolled = found.rollout()
    np.testing.assert_allclose(rolled.numpy(), flow, atol=1e-6)
    assert_same(rolled.sum(1), torch.ones(17))


def test_a_token_that_a_mask_keeps_from_all_stays_itself_in_a_rollout(
    tiny: Model, noise: Tensor
) -> None:
    weights = {"0": torch.tensor([[[0.0, 0.0], [1.0, 0.0]]])}
    rolled = Attention("ours", hookviz.prepare(tiny, noise), weights, None).rollout()
    assert rolled.tolist() == [[1.0, 0.0], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ([(2, 4, 4), (3, 2, 4, 4)], r"'1' of ours has weights of 3×2×4×4, where heads×4×4"),
        ([(2, 4, 4), (2, 1, 4)], r"'1' of ours has weights of 2×1×4, where heads×4×4"),
        ([(2, 4, 4), (2, 5, 5)], r"'1' of ours has weights of 2×5×5, where heads×4×4"),
        ([(2, 3, 4)], r"'0' of ours has weights of 2×3×4, where heads×4×4"),
        ([], r"no weights to roll out"),
    ],
)
def test_rollout_refuses_what_does_not_go_through(
    shapes: list[tuple[int, ...]], words: str, tiny: Model, noise: Tensor
) -> None:
    weights = {str(number): torch.ones(shape) for number, shape in enumerate(shapes)}
    model_input = hookviz.prepare(tiny, noise)
    with pytest.raises(hookviz.HookVizError, match=words):
        Attention("ours", model_input, weights, None, 0, weights).rollout()
    with pytest.raises(hookviz.HookVizError, match=words):
        Attention("ours", model_input, weights, None, 0, weights).gradient_rollout()


def test_gradient_rollout_is_that_of_chefer_gur_and_wolf() -> None:
    """Equations 5 and 6, with weights and gradients from a pass written out, head by head."""
    network: Any = seeded(vit)
    image = random_input(0)
    nn.init.normal_(network.heads.head.weight)  # torchvision's begin as zeros
    found = hookviz.attention(as_model(network), image, target=3)
    _, seen = plain_pass(network, image)
    tokens = seen["encoder.dropout"][1]
    every = []
    for layer in network.encoder.layers:
        normal = layer.ln_1(tokens)
        own = layer.self_attention
        query, key, value = functional_heads(own, normal)
        weights = (query @ key.mT / 2).softmax(-1)
        weights.retain_grad()
        every.append(weights)
        mixed = own.out_proj((weights @ value).transpose(1, 2).flatten(2))
        tokens = tokens + mixed
        tokens = tokens + layer.mlp(layer.ln_2(tokens))
    network.heads(network.encoder.ln(tokens)[:, 0])[0, 3].backward()
    relevance = np.eye(17)
    for weights in every:
        assert weights.grad is not None
        product = (weights.grad * weights)[0].detach().double().numpy()
        mean = sum(np.where(head > 0, head, 0) for head in product) / len(product)
        relevance = relevance + mean @ relevance
    rolled = found.gradient_rollout().numpy()
    np.testing.assert_allclose(rolled, relevance, atol=1e-6)
    assert np.abs(rolled - np.eye(17)).max() > 1e-3


def functional_heads(layer: Any, tokens: Tensor) -> list[Tensor]:
    """Queries, keys and values of (1, tokens, 16), each (1, 4 heads, tokens, 4)."""
    whole = tokens @ layer.in_proj_weight.mT + layer.in_proj_bias
    return [torch.unflatten(part, -1, (4, 4)).transpose(1, 2) for part in whole.chunk(3, -1)]


def test_without_a_target_there_is_no_gradient_to_roll_out() -> None:
    found = hookviz.attention(as_model(seeded(vit)), random_input(0))
    with pytest.raises(hookviz.HookVizError, match="target=class"):
        found.gradient_rollout()
