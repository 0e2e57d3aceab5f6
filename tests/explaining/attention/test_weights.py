"""`hookviz.attention`: its weights, gradients, rollout and refusals, by hand and by differences."""

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import hookviz
from hookviz.explaining.attention.weights import AttentionMaps, attending_layers, no_attention_error
from hookviz.hooking import attention_calls
from hookviz.types import Model
from tests.attending import Patches, assert_same, in_heads, model_of, plain_pass, vit
from tests.networks import all_hooks, as_model, random_input, seeded
from tests.unharmed import generators, settings_of_torch, snapshot


class Cross(nn.Module):
    """Four tokens attend to all, but not to every other one; then again, each to what is before."""

    def __init__(self) -> None:
        super().__init__()
        self.queries, self.keys = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, tokens: Tensor) -> Tensor:
        query, key, value = (
            in_heads(part) for part in (self.queries(tokens[:, :4]), self.keys(tokens), tokens)
        )
        mask = (torch.arange(tokens.shape[1]) % 2 == 0).expand(4, -1)
        mixed = functional.scaled_dot_product_attention(query, key, value, mask)
        mixed = functional.scaled_dot_product_attention(mixed, mixed, mixed, is_causal=True)
        return mixed.transpose(1, 2).flatten(2)


def test_queries_can_be_fewer_than_keys_and_a_layer_can_attend_twice() -> None:
    network, image = seeded(lambda: Patches(Cross())), random_input(0)
    found = hookviz.attention(as_model(network), image)
    assert list(found) == ["mix", "mix#1"]
    _, seen = plain_pass(network, image)
    query = in_heads(seen["mix.queries"][1][0])
    key = in_heads(seen["mix.keys"][1][0])
    bias = torch.where(torch.arange(16) % 2 == 0, 0.0, -torch.inf)
    own = (query @ key.mT / 2 + bias).softmax(-1)
    assert_same(found["mix"], own)
    mixed = own @ in_heads(seen["mix"][0][0])
    causal = torch.full((4, 4), -torch.inf).triu(1)
    own = (mixed @ mixed.mT / 2 + causal).softmax(-1)
    assert_same(found["mix#1"], own)
    with pytest.raises(hookviz.UnknownLayerError, match="no layer that attends called 'mix#2'"):
        found["mix#2"]
    assert "head" not in found


def test_a_network_may_attend_between_its_layers() -> None:
    class OneHead(nn.Sequential):
        def forward(self, images: Tensor) -> Tensor:
            tokens: Tensor = self[0](images)[0].flatten(1).mT
            return (tokens @ tokens.mT).softmax(-1) @ tokens

    network, image = seeded(lambda: OneHead(nn.Conv2d(3, 8, 4, stride=4))), random_input(0)
    for layers in (None, "", ["0", ""]):
        found = hookviz.attention(as_model(network), image, layers)
        assert list(found) == [""]
        tokens = network[0](image)[0].flatten(1).mT.detach()
        assert_same(found[""], (tokens @ tokens.mT).softmax(-1)[None])


@pytest.mark.parametrize(
    ("before", "after"),
    [((16, 4), (16, 4)), ((), (1, 16, 4)), ((1, 2), (2, 16, 4)), ((1, 1, 4), (1, 4, 16, 4))],
    ids=["windows", "neither batch nor heads", "batch", "batch and one head before windows"],
)
def test_a_batch_of_one_is_left_out_and_nothing_else(
    before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    class Shaped(nn.Module):
        def forward(self, tokens: Tensor) -> Tensor:
            queries = tokens[0].expand(*before, 16, 8)
            mixed = (queries @ queries[..., :4, :].mT).softmax(-1) @ queries[..., :4, :]
            return mixed.reshape(-1, 16, 8)[:1]

    found = hookviz.attention(as_model(Patches(Shaped())), random_input(0))
    assert found["mix"].shape == (after if len(after) > 2 else (*after, 16, 4))


def test_of_a_pattern_what_attends_is_taken() -> None:
    model, image = model_of(vit(), 16), random_input(0, 16)
    every = hookviz.attention(model, image)
    assert len(every) == 3
    for layers in ("encoder.*", re.compile(r".*encoder_layer_\d.*"), torch.nn.Module):
        found = hookviz.attention(model, image, layers, target=0)
        assert list(found) == list(found.gradients) == list(every)
        for layer in every:
            assert_same(found[layer], every[layer])
    one = hookviz.attention(model, image, "*encoder_layer_1*")
    assert list(one) == ["encoder.layers.encoder_layer_1.self_attention"]
    for silent in ("*.mlp*", ["encoder.*", "*.mlp*"]):
        with pytest.raises(
            hookviz.ModelError, match=r"In layer '.*encoder_layer_0\.mlp.* These do: "
        ):
            hookviz.attention(model, image, silent)


def test_two_threads_look_at_one_model_at_once() -> None:
    model = as_model(seeded(vit))
    images = [random_input(seed) for seed in range(8)]
    alone = [hookviz.attention(model, image) for image in images]
    with ThreadPoolExecutor(4) as threads:
        at_once = list(threads.map(lambda image: hookviz.attention(model, image), images))
    assert not torch.equal(*(next(iter(found.values())) for found in alone[:2]))
    for one, other in zip(alone, at_once, strict=True):
        assert list(one) == list(other)
        assert all(torch.equal(one[layer], other[layer]) for layer in one)


def test_what_attends_nowhere_is_told(tiny: Model, noise: Tensor) -> None:
    with pytest.raises(hookviz.ModelError, match=r"Tiny computes no attention.*ShapesViT"):
        hookviz.attention(tiny, noise)
    model, image = as_model(seeded(vit)), random_input(0)
    with pytest.raises(
        hookviz.ModelError, match=r"'encoder.ln' of .*attends. These do: .*_2\.self"
    ):
        hookviz.attention(model, image, ["encoder.ln", "encoder.layers.encoder_layer_0"])
    with pytest.raises(hookviz.UnknownLayerError, match="Did you mean 'encoder"):
        hookviz.attention(model, image, "encoder.layer")
    with pytest.raises(hookviz.SettingError, match="layers=3: a layer goes by its name"):
        hookviz.attention(model, image, 3)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:`torch.jit", "ignore::torch.jit.TracerWarning")
def test_a_script_is_named_as_what_is_not_seen() -> None:
    def traced(module: nn.Module, given: Tensor) -> nn.Module:
        program: nn.Module = torch.jit.trace(  # type: ignore[no-untyped-call]
            module.eval(), given, check_trace=False
        )
        return program

    network, layer = seeded(vit), "encoder.layers.encoder_layer_0"
    network.set_submodule(layer, traced(network.get_submodule(layer), torch.zeros(1, 17, 16)))
    with pytest.raises(hookviz.ModelError, match=r"_0' of .*TorchScript.* is not seen. These do:"):
        hookviz.attention(as_model(network), random_input(0), layer)
    alone = nn.Sequential(nn.Conv2d(3, 8, 4), traced(nn.ReLU(), torch.zeros(1)))
    with pytest.raises(hookviz.ModelError, match=r"no attention.*TorchScript module is not seen"):
        hookviz.attention(as_model(alone), random_input(0))


def test_layers_that_attend_are_listed_once_and_without_computing_weights(
    monkeypatch: pytest.MonkeyPatch, tiny: Model
) -> None:
    model = as_model(seeded(vit))
    expected = list(hookviz.attention(model, random_input(0)))

    class Twice(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            tokens = images.flatten(2).mT
            for _ in range(2):
                tokens = torch.softmax(tokens @ tokens.mT, -1) @ tokens
            return tokens.mean(1)

    def refuse(*_: object, **__: object) -> Tensor:
        raise AssertionError("weights were computed")

    monkeypatch.setattr(attention_calls, "multi_head_weights", refuse)
    assert list(attending_layers(model, (3, 16, 16))) == expected
    assert all_hooks(model) == 0
    assert attending_layers(as_model(nn.Sequential(Twice())), (3, 4, 4)) == ("0",)
    assert attending_layers(tiny, (3, 16, 16)) == ()
    assert "ShapesViT" in str(no_attention_error(tiny))


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
    model_input = hookviz.prepare_input(tiny, noise)
    masked = {"0": torch.tensor([[[0.0, 0.0], [1.0, 0.0]]])}  # a token that may not look at any
    rolled = AttentionMaps("ours", model_input, masked, None).rollout()
    assert rolled.tolist() == [[1.0, 0.0], [0.5, 0.5]]
    weights = {str(number): torch.ones(shape) for number, shape in enumerate(shapes)}
    refused = AttentionMaps("ours", model_input, weights, None, 0, weights)
    for rollout in (refused.rollout, refused.gradient_rollout):
        with pytest.raises(hookviz.HookVizError, match=words):
            rollout()


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
        whole = normal @ layer.self_attention.in_proj_weight.mT + layer.self_attention.in_proj_bias
        query, key, value = map(in_heads_of_four, whole.chunk(3, -1))
        weights = (query @ key.mT / 2).softmax(-1)
        weights.retain_grad()
        every.append(weights)
        mixed = layer.self_attention.out_proj((weights @ value).transpose(1, 2).flatten(2))
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


def in_heads_of_four(tokens: Tensor) -> Tensor:
    return torch.unflatten(tokens, -1, (4, 4)).transpose(1, 2)


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

    def found(kind: type[ByHand]) -> AttentionMaps:
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


def test_what_is_asked_for_alone_has_gradients_and_the_network_and_process_stay() -> None:
    model, image = as_model(seeded(vit)), random_input(0)
    before = snapshot(model.network), generators(), settings_of_torch()
    layer = "encoder.layers.encoder_layer_1.self_attention"
    plain = hookviz.attention(model, image)
    compiled: Any = torch.compile(seeded(vit), backend="eager")
    for name, weights in hookviz.attention(as_model(compiled), image).items():
        assert_same(plain[name], weights)
    with torch.inference_mode():
        found = hookviz.attention(model, image, layer, target=CLASS)
    assert list(found.gradients) == [layer]
    every = hookviz.attention(model, image, target=str(CLASS))
    assert_same(found.gradients[layer], every.gradients[layer])
    assert (snapshot(model.network), generators(), settings_of_torch()) == before
    assert all_hooks(model) == 0
    assert model.network.training
    with pytest.raises(hookviz.HookVizError, match="target=class"):
        plain.gradient_rollout()


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
