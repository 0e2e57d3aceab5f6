"""Queries and keys of an attention, however it is written, against the layer's own products."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from hookviz.hooking import hooks
from hookviz.hooking.attention_factors import AttentionFactors
from hookviz.types import ActivationKey
from tests.networks import seeded

Mix = Callable[[Tensor, Tensor, Tensor], Tensor]


class Layer(nn.Module):
    """Attention of one head, twice; more queries than keys."""

    def __init__(self, mix: Mix) -> None:
        super().__init__()
        self.mix = mix
        self.queries, self.keys = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, tokens: Tensor) -> Tensor:
        once = self.mix(self.queries(tokens), self.keys(tokens[:, :3]), tokens[:, :3])
        return self.mix(once, once, once)


WRITTEN: dict[str, Mix] = {
    "fused": functional.scaled_dot_product_attention,
    "fused, by name": lambda q, k, v: functional.scaled_dot_product_attention(
        query=q, key=k, value=v
    ),
    "matmul": lambda q, k, v: (q @ k.mT / 3).softmax(-1) @ v,
    "bmm": lambda q, k, v: torch.bmm(torch.softmax(torch.bmm(q, k.mT), 2), v),
    "keys first": lambda q, k, v: (k @ q.mT).softmax(-2).mT @ v,
    "einsum": lambda q, k, v: torch.einsum("bid, bjd -> bij", q, k).softmax(dim=-1) @ v,
}


def found(mix: Mix, call: int) -> tuple[AttentionFactors, Tensor, Layer]:
    layer = seeded(lambda: Layer(mix))
    tokens = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    calls = AttentionFactors(layer, ActivationKey("", call))
    with torch.no_grad(), calls.watching(), pytest.raises(hooks.StopForward):
        layer(tokens)
    return calls, tokens, layer


@pytest.mark.parametrize("mix", WRITTEN.values(), ids=WRITTEN)
def test_they_are_what_is_multiplied(mix: Mix) -> None:
    calls, tokens, layer = found(mix, 0)
    assert calls.factors is not None
    with torch.no_grad():
        torch.testing.assert_close(calls.factors[0], layer.queries(tokens))
        torch.testing.assert_close(calls.factors[1], layer.keys(tokens[:, :3]))


def test_the_pass_ends_at_the_call_that_is_asked_for() -> None:
    calls, tokens, layer = found(WRITTEN["matmul"], 1)
    assert calls.factors is not None
    with torch.no_grad():
        once = layer.mix(layer.queries(tokens), layer.keys(tokens[:, :3]), tokens[:, :3])
    torch.testing.assert_close(calls.factors[0], once)


def test_of_other_products_nothing_is_told() -> None:
    calls, _, _ = found(lambda q, k, v: torch.einsum("bid,bjd->bji", q, k).softmax(-2).mT @ v, 0)
    assert calls.factors is None
