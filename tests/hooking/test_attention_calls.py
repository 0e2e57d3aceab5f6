"""What is taken for attention in a pass, and what is not; and which layer it is said to be of."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from hookviz.hooking.attention_calls import AttentionCalls
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
