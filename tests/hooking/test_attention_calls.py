"""What is taken for attention in a pass, its weights against sums written out, and its layer."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from hookviz.hooking.attention_calls import AttentionCalls, attention_weights, multi_head_weights
from tests.networks import seeded

TOKENS, SIZE = 5, 8


class Layer(nn.Module):
    """A module that computes one thing with queries, keys and values."""

    def __init__(self, compute: Callable[..., Tensor]) -> None:
        super().__init__()
        self.compute = compute
        self.queries, self.keys, self.values = (nn.Linear(SIZE, SIZE) for _ in range(3))
        self.mixing = nn.Linear(2, 2)
        self.weight = nn.Parameter(torch.randn(SIZE, TOKENS))

    def forward(self, tokens: Tensor) -> Tensor:
        parts = (self.queries(tokens), self.keys(tokens), self.values(tokens))
        return self.compute(self, *(part.unflatten(-1, (2, -1)).transpose(1, 2) for part in parts))


def watched(network: nn.Module, *layers: str) -> AttentionCalls:
    calls = AttentionCalls(network, frozenset(layers) if layers else None)
    with torch.no_grad(), calls.watching():
        network(torch.randn(1, TOKENS, SIZE, generator=torch.Generator().manual_seed(0)))
    return calls


def softmax_of(layer: Layer, scores: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """The weights of a layer's two heads, by plain PyTorch."""
    tokens = torch.randn(1, TOKENS, SIZE, generator=torch.Generator().manual_seed(0))
    parts = [part(tokens).unflatten(-1, (2, -1)) for part in (layer.queries, layer.keys)]
    query, key = (part.transpose(1, 2) for part in parts)
    own: Tensor = scores(query, key).softmax(-1)
    return own


def plainly(query: Tensor, key: Tensor) -> Tensor:
    return query @ key.transpose(-2, -1)


def in_place(_: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.empty(2, TOKENS, TOKENS)
    torch.bmm(q[0], k[0].mT, out=scores)
    scores *= 0.5
    scores[:, 0, 1] = -torch.inf
    return functional.softmax(scores, dim=2).bmm(v[0])


def in_place_by_hand(query: Tensor, key: Tensor) -> Tensor:
    scores = plainly(query, key) / 2
    scores[..., 0, 1] = -torch.inf
    return scores


def talking_heads(layer: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = layer.mixing((q @ k.mT).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
    return functional.dropout(scores.softmax(-1), 0.5, training=False) @ v


TAKEN: dict[str, tuple[Callable[..., Tensor], Callable[[Tensor, Tensor], Tensor] | None]] = {
    "operators": (lambda _, q, k, v: torch.softmax(q @ k.mT / 2, -1) @ v, None),
    "module": (lambda _, q, k, v: nn.Softmax(-1)(q.matmul(k.transpose(2, 3)) * 0.5) @ v, None),
    "kept in place": (in_place, in_place_by_hand),
    "baddbmm": (
        lambda _, q, k, v: torch.baddbmm(torch.ones(2, 1, TOKENS), q[0], k[0].mT).softmax(-1) @ v,
        plainly,
    ),
    "einsum": (
        lambda _, q, k, v: torch.einsum(
            "bhqk,bhkd->bhqd", torch.einsum("bhqd,bhkd->bhqk", q, k).softmax(-1), v
        ),
        plainly,
    ),
    "einsum with the heads between": (
        lambda _, q, k, v: torch.einsum(
            "bqhk,bhkd->bhqd", torch.einsum("bhqd,bhkd->bqhk", q, k).softmax(-1), v
        ),
        plainly,
    ),
    "einsum with the keys first": (
        lambda _, q, k, v: torch.einsum(
            "bhkq,bhkd->bhqd", torch.einsum("bhqd,bhkd->bhkq", q, k).softmax(-2), v
        ),
        plainly,
    ),
    "keys times queries": (lambda _, q, k, v: v.mT @ (k @ q.mT).softmax(-2), plainly),
    "windows of a mask": (
        lambda _, q, k, v: (
            (q @ k.mT).view(1, 1, 2, TOKENS, TOKENS).add(1).view(1, 2, TOKENS, TOKENS).softmax(-1)
            @ v
        ),
        plainly,
    ),
    "operators of torch.ops": (
        lambda _, q, k, v: torch.ops.aten.matmul.default(
            torch.ops.aten.softmax.int(torch.ops.aten.matmul.default(q, k.mT), -1), v
        ),
        plainly,
    ),
    "a function of torch": (
        lambda _, q, k, v: functional.scaled_dot_product_attention(q, k, v, scale=0.5),
        None,
    ),
}


@pytest.mark.parametrize("way", TAKEN)
def test_attention_is_found_however_it_is_written(way: str) -> None:
    compute, scores = TAKEN[way]
    layer = seeded(lambda: Layer(compute))
    (call,) = watched(layer).found
    assert call.layer == ""
    assert call.weights is not None
    own = softmax_of(layer, scores or (lambda query, key: plainly(query, key) / 2))
    torch.testing.assert_close(call.weights.view_as(own), own, atol=1e-6, rtol=0)


def test_heads_that_talk_with_each_other_still_attend() -> None:
    layer = seeded(lambda: Layer(talking_heads))
    (call,) = watched(layer).found
    own = softmax_of(layer, lambda q, k: layer.mixing(plainly(q, k).movedim(1, -1)).movedim(-1, 1))
    torch.testing.assert_close(call.weights, own, atol=1e-6, rtol=0)


NOT_TAKEN: dict[str, Callable[..., Tensor]] = {
    "a classifier's softmax": lambda layer, q, k, v: layer.queries(
        v.reshape(1, TOKENS, SIZE)
    ).softmax(-1),
    "scores of no values": lambda _, q, k, v: (q @ k.mT).softmax(-1),
    "values weighed by no softmax": lambda _, q, k, v: (q @ k.mT) @ v,
    "a linear attention and a classifier after it": lambda layer, q, k, v: (
        (q @ (k.mT @ v)).mean(2).softmax(-1) @ v[:, 0].mT
    ),
    "a pooling by a layer's weights": lambda layer, q, k, v: (
        layer.mixing(v.mT[..., :2]).softmax(-1) @ layer.mixing.weight
    ),
    "a gate written as a product": lambda layer, q, k, v: (
        (v.transpose(1, 2).flatten(2) @ layer.weight).softmax(-1) @ v[:, 0]
    ),
    "a softmax over the heads": lambda _, q, k, v: (q @ k.mT).softmax(1) @ v,
    "scores that are normalised first": lambda _, q, k, v: (
        functional.layer_norm(q @ k.mT, (TOKENS,)).softmax(-1) @ v
    ),
}


@pytest.mark.parametrize("way", NOT_TAKEN)
def test_what_is_no_attention_is_none(way: str) -> None:
    assert watched(seeded(lambda: Layer(NOT_TAKEN[way]))).found == []


class Parts(nn.Module):
    """Attention whose steps are modules of their own, twice in one call."""

    def __init__(self) -> None:
        super().__init__()
        self.product, self.softmax, self.weigh = Step(torch.matmul), nn.Softmax(-1), Step(torch.bmm)

    def forward(self, tokens: Tensor) -> Tensor:
        for _ in range(2):
            tokens = self.weigh(self.softmax(self.product(tokens, tokens.mT)), tokens)
        return tokens


class Step(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Tensor) -> Any:
        return self.function(*tensors)


def test_the_layer_is_the_innermost_call_in_which_all_of_it_runs() -> None:
    found = watched(nn.Sequential(nn.Linear(SIZE, SIZE), Parts(), Parts())).found
    assert [call.within for call in found] == [("", "1")] * 2 + [("", "2")] * 2


def test_an_outer_module_attends_where_it_multiplies_queries_and_keys_itself() -> None:
    class Weighs(nn.Module):
        def forward(self, scores: Tensor, values: Tensor) -> Tensor:
            return scores.softmax(-1) @ values

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Weighs()

        def forward(self, tokens: Tensor) -> Any:
            return self.inner(tokens @ tokens.mT, tokens)

    (call,) = watched(nn.Sequential(Outer())).found
    assert call.within == ("", "0")


def test_weights_that_weigh_twice_are_found_once_and_what_they_weigh_is_no_product_of_scores() -> (
    None
):
    def twice(_: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = (q @ k.mT).softmax(-1)
        return weights @ v + weights @ k

    def gated(_: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        mixed = (q @ k.mT).softmax(-1) @ v
        return mixed.softmax(-1) @ v.mT

    for compute in (twice, gated):
        layer = seeded(lambda compute=compute: Layer(compute))  # type: ignore[misc]
        (call,) = watched(layer).found
        assert call.weights is not None
        torch.testing.assert_close(call.weights, softmax_of(layer, plainly), atol=1e-6, rtol=0)


def test_weights_are_kept_of_the_layers_looked_at_alone() -> None:
    found = watched(nn.Sequential(Parts(), nn.Sequential(Parts())), "1").found
    assert [(call.layer, call.weights is None) for call in found] == [
        *[("0", True)] * 2,
        *[("1.0", False)] * 2,
    ]


def test_weights_that_a_network_writes_into_are_as_the_softmax_made_them() -> None:
    def compute(_: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = (q @ k.mT).softmax(-1)
        return weights.mul_(0) @ v

    layer = seeded(lambda: Layer(compute))
    (call,) = watched(layer).found
    torch.testing.assert_close(call.weights, softmax_of(layer, plainly), atol=1e-6, rtol=0)


def test_a_call_that_fails_is_no_longer_running() -> None:
    class Retries(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(SIZE + 1, SIZE)
            self.parts = Parts()

        def forward(self, tokens: Tensor) -> Any:
            try:
                return self.linear(tokens)
            except RuntimeError:
                return self.parts(tokens)

    found = watched(Retries()).found
    assert [call.within for call in found] == [("", "parts")] * 2


QUERIES, KEYS, HEAD_SIZE = 3, 5, 4


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
    query, key, value = (
        normal(1, 2, QUERIES, HEAD_SIZE),
        *normal(2, 1, 2, KEYS, HEAD_SIZE, seed=1),
    )
    weights = attention_weights(query, key, value, **options)
    assert weights is not None
    for head in range(2):
        own = by_hand(query[0, head], key[0, head], bias, options.get("scale", HEAD_SIZE**-0.5))
        torch.testing.assert_close(weights[0, head], own, atol=1e-6, rtol=0)
    output = functional.scaled_dot_product_attention(query, key, value, **options)
    torch.testing.assert_close(weights @ value, output, atol=1e-6, rtol=0)


def test_several_heads_share_the_keys_of_a_group() -> None:
    query, key, value = (
        normal(1, 4, QUERIES, HEAD_SIZE),
        *normal(2, 1, 2, KEYS, HEAD_SIZE, seed=1),
    )
    weights = attention_weights(query, key, value, enable_gqa=True)
    assert weights is not None
    for head in range(4):
        own = by_hand(
            query[0, head], key[0, head // 2], torch.zeros(QUERIES, KEYS), HEAD_SIZE**-0.5
        )
        torch.testing.assert_close(weights[0, head], own, atol=1e-6, rtol=0)


def test_half_precision_is_computed_in_float32() -> None:
    query, key = (
        normal(1, 2, QUERIES, HEAD_SIZE).half(),
        normal(1, 2, KEYS, HEAD_SIZE, seed=1).half(),
    )
    weights = attention_weights(query, key)
    assert weights is not None
    assert weights.dtype == torch.float32
    own = by_hand(query[0, 1], key[0, 1], torch.zeros(QUERIES, KEYS), HEAD_SIZE**-0.5)
    torch.testing.assert_close(weights[0, 1], own, atol=1e-6, rtol=0)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_have_weights_where_their_parts_are_alike() -> None:
    parts = [normal(2, QUERIES, HEAD_SIZE), normal(2, QUERIES, HEAD_SIZE, seed=1)]
    nested = torch.nested.nested_tensor(parts)
    weights = attention_weights(nested, nested)
    assert weights is not None
    assert weights.shape == (2, 2, QUERIES, QUERIES)
    odd = torch.nested.nested_tensor([parts[0], parts[1][:, :2]])
    assert attention_weights(odd, odd) is None


@pytest.mark.parametrize("need_weights", [True, False])
def test_those_of_several_heads_are_before_dropout_and_by_head(need_weights: bool) -> None:
    layer = torch.nn.MultiheadAttention(HEAD_SIZE, 2, dropout=0.5, bias=False)
    tokens = normal(QUERIES, 1, HEAD_SIZE)
    state = torch.get_rng_state()
    weights = multi_head_weights(
        *(tokens, tokens, tokens, HEAD_SIZE, 2, layer.in_proj_weight, None, None, None, False, 0.5),
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
    layer = torch.nn.MultiheadAttention(HEAD_SIZE, 2)
    tokens = normal(QUERIES, 1, HEAD_SIZE)
    nothing = torch.zeros(QUERIES, QUERIES)  # no causal mask at all
    arguments = (
        *(
            tokens,
            tokens,
            tokens,
            HEAD_SIZE,
            2,
            layer.in_proj_weight,
            layer.in_proj_bias,
            None,
            None,
        ),
        *(False, 0.0, layer.out_proj.weight, layer.out_proj.bias, False, None),
    )
    hinted = multi_head_weights(*arguments, False, nothing, is_causal=True)
    assert not hinted[0].triu(1).any()
    masked = multi_head_weights(*arguments, True, nothing, is_causal=True)
    assert masked[0].triu(1).any()
