"""The weights of torch's attention functions, against sums written out and their outputs."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from hookviz.hooking.attention_weights import attention_weights, multi_head_weights

QUERIES, KEYS, SIZE = 3, 5, 4


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def boolean() -> Tensor:
    """A mask that keeps the first query from every key, and the others from one each."""
    mask = torch.ones(QUERIES, KEYS, dtype=torch.bool)
    mask[0] = False
    mask[1, 2] = mask[2, 4] = False
    return mask


def by_hand(query: Tensor, key: Tensor, bias: Tensor, scale: float) -> Tensor:
    """softmax(QKᵀ·scale + bias) of one head, number by number."""
    rows = []
    for place, row in enumerate(query.detach().double()):
        scores = [float(row @ other) * scale for other in key.detach().double()]
        terms = [
            math.exp(score + float(more)) for score, more in zip(scores, bias[place], strict=True)
        ]
        rows.append([term / (sum(terms) or 1) for term in terms])
    return torch.tensor(rows)


@pytest.mark.parametrize(
    ("options", "bias"),
    [
        ({}, torch.zeros(QUERIES, KEYS)),
        ({"scale": 2.0}, torch.zeros(QUERIES, KEYS)),
        ({"attn_mask": normal(QUERIES, KEYS, seed=4)}, normal(QUERIES, KEYS, seed=4)),
        ({"attn_mask": boolean()}, torch.zeros(QUERIES, KEYS).masked_fill(~boolean(), -torch.inf)),
        ({"is_causal": True}, torch.full((QUERIES, KEYS), -torch.inf).triu(1)),
    ],
    ids=["plain", "scale", "float mask", "boolean mask", "causal"],
)
def test_they_are_the_softmax_and_give_the_output(options: dict[str, Any], bias: Tensor) -> None:
    query, key, value = (normal(1, 2, QUERIES, SIZE), *normal(2, 1, 2, KEYS, SIZE, seed=1))
    weights = attention_weights(query, key, value, **options)
    assert weights is not None
    for head in range(2):
        own = by_hand(query[0, head], key[0, head], bias, options.get("scale", SIZE**-0.5))
        torch.testing.assert_close(weights[0, head], own, atol=1e-6, rtol=0)
    output = functional.scaled_dot_product_attention(query, key, value, **options)
    torch.testing.assert_close(weights @ value, output, atol=1e-6, rtol=0)


def test_several_heads_share_the_keys_of_a_group() -> None:
    query, key, value = (normal(1, 4, QUERIES, SIZE), *normal(2, 1, 2, KEYS, SIZE, seed=1))
    weights = attention_weights(query, key, value, enable_gqa=True)
    assert weights is not None
    for head in range(4):
        own = by_hand(query[0, head], key[0, head // 2], torch.zeros(QUERIES, KEYS), SIZE**-0.5)
        torch.testing.assert_close(weights[0, head], own, atol=1e-6, rtol=0)


def test_half_precision_is_computed_in_float32() -> None:
    query, key = normal(1, 2, QUERIES, SIZE).half(), normal(1, 2, KEYS, SIZE, seed=1).half()
    weights = attention_weights(query, key)
    assert weights is not None
    assert weights.dtype == torch.float32
    own = by_hand(query[0, 1], key[0, 1], torch.zeros(QUERIES, KEYS), SIZE**-0.5)
    torch.testing.assert_close(weights[0, 1], own, atol=1e-6, rtol=0)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_have_weights_where_their_parts_are_alike() -> None:
    parts = [normal(2, QUERIES, SIZE), normal(2, QUERIES, SIZE, seed=1)]
    nested = torch.nested.nested_tensor(parts)
    weights = attention_weights(nested, nested)
    assert weights is not None
    assert weights.shape == (2, 2, QUERIES, QUERIES)
    odd = torch.nested.nested_tensor([parts[0], parts[1][:, :2]])
    assert attention_weights(odd, odd) is None


@pytest.mark.parametrize("need_weights", [True, False])
def test_those_of_several_heads_are_before_dropout_and_by_head(need_weights: bool) -> None:
    layer = torch.nn.MultiheadAttention(SIZE, 2, dropout=0.5, bias=False)
    tokens = normal(QUERIES, 1, SIZE)
    state = torch.get_rng_state()
    weights = multi_head_weights(
        *(tokens, tokens, tokens, SIZE, 2, layer.in_proj_weight, None, None, None, False, 0.5),
        *(layer.out_proj.weight, None),
        need_weights=need_weights,
    )
    query, key, _ = (tokens[:, 0] @ layer.in_proj_weight.T).chunk(3, -1)
    for head, part in enumerate((slice(0, 2), slice(2, 4))):
        own = by_hand(query[:, part], key[:, part], torch.zeros(QUERIES, QUERIES), 2**-0.5)
        torch.testing.assert_close(weights[0, head], own, atol=1e-6, rtol=0)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_hint_that_a_mask_is_causal_is_followed_as_torch_does() -> None:
    """Without weights PyTorch goes by the hint, and by the mask where weights are asked for."""
    layer = torch.nn.MultiheadAttention(SIZE, 2)
    tokens = normal(QUERIES, 1, SIZE)
    nothing = torch.zeros(QUERIES, QUERIES)  # no causal mask at all
    arguments = (
        *(tokens, tokens, tokens, SIZE, 2, layer.in_proj_weight, layer.in_proj_bias, None, None),
        *(False, 0.0, layer.out_proj.weight, layer.out_proj.bias, False, None),
    )
    hinted = multi_head_weights(*arguments, False, nothing, is_causal=True)
    assert not hinted[0].triu(1).any()
    masked = multi_head_weights(*arguments, True, nothing, is_causal=True)
    assert masked[0].triu(1).any()
