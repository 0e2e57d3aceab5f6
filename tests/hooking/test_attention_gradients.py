"""The gradient of a class's score by the weights, against differences and written-out formulas."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import hookviz
from hookviz.explaining.attention.weights import Attention
from tests.attending import Patches, assert_same, in_heads, plain_pass, vit
from tests.networks import all_hooks, as_model, random_input, seeded
from tests.unharmed import generators, settings_of_torch, snapshot

CLASS = 3


def test_gradients_are_those_of_the_class_by_the_weights() -> None:
    """Against differences: what one weight adds, if it alone is changed behind the softmax."""
    network: Any = seeded(lambda: Patches(ByHand()))
    image = random_input(0)
    found = hookviz.attention(as_model(network), image, target=CLASS)
    assert found.target == CLASS
    assert_same(found["mix"], hookviz.attention(as_model(network), image)["mix"])
    for place in ((0, 2, 3), (1, 15, 0)):
        scores = []
        for step in (-1e-2, 1e-2):
            network.mix.more = torch.zeros(2, 16, 16)
            network.mix.more[place] = step
            scores.append(float(network(image)[0, CLASS].detach()))
        expected = (scores[1] - scores[0]) / 2e-2
        assert float(found.gradients["mix"][place]) == pytest.approx(expected, abs=1e-4)


def out_of_heads(mixed: Tensor) -> Tensor:
    return mixed.transpose(1, 2).flatten(2)


class ByHand(nn.Module):
    """Attention of two heads by products and a softmax, with what is added to the weights."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.more: Tensor | float = 0.0

    def forward(self, tokens: Tensor) -> Tensor:
        query, key, value = map(in_heads, self.qkv(tokens).chunk(3, -1))
        weights = (query @ key.mT / 2).softmax(-1) + self.more
        return out_of_heads(weights @ value)


class Fused(ByHand):
    def forward(self, tokens: Tensor) -> Tensor:
        query, key, value = map(in_heads, self.qkv(tokens).chunk(3, -1))
        mixed = functional.scaled_dot_product_attention(query=query, key=key, value=value)
        return out_of_heads(mixed)


class Torchs(ByHand):
    def __init__(self) -> None:
        super().__init__()
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        mixed, weights = self.attend(*self.qkv(tokens).chunk(3, -1), need_weights=self.more == 1)
        assert (weights is None) == (self.more != 1)
        output: Tensor = mixed if weights is None else mixed + weights.sum()
        return output


class Transposed(ByHand):
    """Softmax along the second last axis: the weights are (keys, queries)."""

    def forward(self, tokens: Tensor) -> Tensor:
        query, key, value = map(in_heads, self.qkv(tokens).chunk(3, -1))
        weights = (key @ query.mT / 2).softmax(-2)
        return out_of_heads(weights.mT @ value)


@pytest.mark.parametrize("kind", [Fused, Transposed])
def test_gradients_are_the_same_however_attention_is_written(kind: type[ByHand]) -> None:
    image = random_input(0)

    def found(kind: type[ByHand]) -> Attention:
        return hookviz.attention(as_model(seeded(lambda: Patches(kind()))), image, target=CLASS)

    own, other = found(ByHand), found(kind)
    assert float(own.gradients["mix"].abs().max()) > 1e-3
    assert_same(own.gradients["mix"], other.gradients["mix"])
    assert own.logits is not None
    assert other.logits is not None
    assert_same(own.logits, other.logits)


@pytest.mark.parametrize("more", [0, 1], ids=["without its weights", "with its weights"])
def test_gradients_of_torchs_own_layer(more: int) -> None:
    """Against the gradient at what mixes: ∂score/∂weights = (∂score/∂mixed) · valueᵀ."""
    network: Any = seeded(lambda: Patches(Torchs()))
    image = random_input(0)
    network.mix.more = more
    found = hookviz.attention(as_model(network), image, target=CLASS)
    layer = network.mix.attend
    _, seen = plain_pass(network, image)
    values = seen["mix.qkv"][1].chunk(3, -1)[2] @ layer.in_proj_weight[16:].mT
    values = in_heads(values + layer.in_proj_bias[16:])[0].detach()
    back = (network.head.weight[CLASS] / 16 @ layer.out_proj.weight).detach()  # of each token
    expected = torch.einsum("hd,hkd->hk", back.unflatten(0, (2, 4)), values)[:, None]
    if more:  # the mean over the heads goes into all 8 numbers of all tokens
        expected = expected + network.head.weight[CLASS].detach().sum() / 2
    assert_same(found.gradients["mix.attend"], expected.expand(2, 16, 16))


def test_gradients_are_kept_of_the_layers_asked_for_and_the_network_is_left_alone() -> None:
    model, image = as_model(seeded(vit)), random_input(0)
    before = snapshot(model.network), generators(), settings_of_torch()
    layer = "encoder.layers.encoder_layer_1.self_attention"
    with torch.inference_mode():
        found = hookviz.attention(model, image, layer, target=CLASS)
    assert list(found.gradients) == [layer]
    every = hookviz.attention(model, image, target=str(CLASS))
    assert_same(found.gradients[layer], every.gradients[layer])
    assert (snapshot(model.network), generators(), settings_of_torch()) == before
    assert all_hooks(model) == 0


def test_a_target_that_is_none_is_refused() -> None:
    class Detached(ByHand):
        def forward(self, tokens: Tensor) -> Tensor:
            with torch.no_grad():
                return super().forward(tokens)

    image = random_input(0)
    with pytest.raises(hookviz.SettingError, match=r"target=5000 is not a class of .*: 0 to 999"):
        hookviz.attention(as_model(seeded(vit)), image, target=5000)
    with pytest.raises(hookviz.ModelError, match=r"'mix' of .* where no gradient comes through"):
        hookviz.attention(as_model(seeded(lambda: Patches(Detached()))), image, target=0)
    assert hookviz.attention(as_model(seeded(lambda: Patches(Detached()))), image).gradients == {}
