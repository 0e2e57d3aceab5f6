"""What is taken for attention in a pass, its weights against sums written out, and its layer."""

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import hookviz
from hookviz import edits
from hookviz.errors import SettingError
from hookviz.hooking.attention_calls import (
    AttentionCalls,
    attention_weights,
    head_axis,
    multi_head_weights,
)
from tests.networks import hook_count, random_input, seeded
from tests.small_transformers import SIDE, swin, torchvision_swin, torchvision_vit, vit

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


def halved(query: Tensor, key: Tensor) -> Tensor:
    return plainly(query, key) / 2


def in_place(_: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.empty(2, TOKENS, TOKENS)
    torch.bmm(q[0], k[0].mT, out=scores)
    scores *= 0.5
    scores[:, 0, 1] = -torch.inf
    return functional.softmax(scores, dim=2).bmm(v[0])


def in_place_by_hand(query: Tensor, key: Tensor) -> Tensor:
    scores = halved(query, key)
    scores[..., 0, 1] = -torch.inf
    return scores


def written_into(_: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    weights = (q @ k.mT).softmax(-1)
    return weights.mul_(0) @ v


TAKEN: dict[str, tuple[Callable[..., Tensor], Callable[[Tensor, Tensor], Tensor]]] = {
    "operators": (lambda _, q, k, v: torch.softmax(q @ k.mT / 2, -1) @ v, halved),
    "module": (lambda _, q, k, v: nn.Softmax(-1)(q.matmul(k.transpose(2, 3)) * 0.5) @ v, halved),
    "kept in place": (in_place, in_place_by_hand),
    "weights that the network writes into": (written_into, plainly),
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
        halved,
    ),
}


@pytest.mark.parametrize("way", TAKEN)
def test_attention_is_found_however_it_is_written(way: str) -> None:
    compute, scores = TAKEN[way]
    layer = seeded(lambda: Layer(compute))
    (call,) = watched(layer).found
    assert call.layer == ""
    assert call.weights is not None
    own = softmax_of(layer, scores)
    torch.testing.assert_close(call.weights.view_as(own), own, atol=1e-6, rtol=0)


def test_heads_that_talk_with_each_other_attend_and_weights_that_weigh_twice_do_so_once() -> None:
    def talking(layer: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = layer.mixing((q @ k.mT).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return functional.dropout(scores.softmax(-1), 0.5, training=False) @ v

    def twice(_: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = (q @ k.mT).softmax(-1)
        return weights @ v + weights @ k

    def gated(_: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        mixed = (q @ k.mT).softmax(-1) @ v
        return mixed.softmax(-1) @ v.mT

    for compute in (talking, twice, gated):
        layer = seeded(lambda compute=compute: Layer(compute))  # type: ignore[misc]

        def scores(query: Tensor, key: Tensor, mix: nn.Module = layer.mixing) -> Tensor:
            return mix(plainly(query, key).movedim(1, -1)).movedim(-1, 1)  # type: ignore[no-any-return]

        (call,) = watched(layer).found
        assert call.weights is not None
        own = softmax_of(layer, scores if compute is talking else plainly)
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

    class Outer(nn.Module):
        """Multiplies queries and keys itself, and so attends."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = Step(lambda scores, values: scores.softmax(-1) @ values)
            self.linear, self.parts = nn.Linear(SIZE + 1, SIZE), Parts()

        def forward(self, tokens: Tensor) -> Any:
            with suppress(RuntimeError):  # a call that fails is no longer running
                self.linear(tokens)
            return self.parts(self.inner(tokens @ tokens.mT, tokens))

    found = watched(nn.Sequential(Outer())).found
    assert [call.within for call in found] == [("", "0")] + [("", "0", "0.parts")] * 2


def test_weights_are_kept_of_the_layers_looked_at_alone() -> None:
    found = watched(nn.Sequential(Parts(), nn.Sequential(Parts())), "1").found
    assert [(call.layer, call.weights is None) for call in found] == [
        *[("0", True)] * 2,
        *[("1.0", False)] * 2,
    ]


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
    ("options", "bias", "heads"),
    [
        ({}, torch.zeros(QUERIES, KEYS), 2),
        ({"scale": 2.0}, torch.zeros(QUERIES, KEYS), 2),
        ({"attn_mask": normal(QUERIES, KEYS, seed=4)}, normal(QUERIES, KEYS, seed=4), 2),
        (
            {"attn_mask": boolean()},
            torch.zeros(QUERIES, KEYS).masked_fill(~boolean(), -torch.inf),
            2,
        ),
        ({"is_causal": True}, torch.full((QUERIES, KEYS), -torch.inf).triu(1), 2),
        ({"enable_gqa": True}, torch.zeros(QUERIES, KEYS), 4),
    ],
    ids=["plain", "scale", "float mask", "boolean mask", "causal", "two heads share keys"],
)
@pytest.mark.parametrize("kind", [torch.float32, torch.float16])
def test_they_are_the_softmax_and_give_the_output(
    options: dict[str, Any], bias: Tensor, heads: int, kind: torch.dtype
) -> None:
    query = normal(1, heads, QUERIES, HEAD_SIZE).to(kind)
    key, value = normal(2, 1, 2, KEYS, HEAD_SIZE, seed=1).to(kind)
    weights = attention_weights(query, key, value, **options)
    assert weights is not None
    assert weights.dtype == torch.float32
    for head in range(heads):
        own = by_hand(
            query[0, head], key[0, 2 * head // heads], bias, options.get("scale", HEAD_SIZE**-0.5)
        )
        torch.testing.assert_close(weights[0, head], own, atol=1e-6, rtol=0)
    if kind == torch.float32:
        output = functional.scaled_dot_product_attention(query, key, value, **options)
        values = value.repeat_interleave(heads // 2, 1)
        torch.testing.assert_close(weights @ values, output, atol=1e-6, rtol=0)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_have_weights_where_their_parts_are_alike() -> None:
    parts = [normal(2, QUERIES, HEAD_SIZE), normal(2, QUERIES, HEAD_SIZE, seed=1)]
    nested = torch.nested.nested_tensor(parts)
    weights = attention_weights(nested, nested)
    assert weights is not None
    assert weights.shape == (2, 2, QUERIES, QUERIES)
    odd = torch.nested.nested_tensor([parts[0], parts[1][:, :2]])
    assert attention_weights(odd, odd) is None


def of_heads(*more: Any, bias: bool = True, **options: Any) -> tuple[nn.MultiheadAttention, Tensor]:
    """A layer of two heads, and its weights for three tokens."""
    layer = nn.MultiheadAttention(HEAD_SIZE, 2, dropout=0.5, bias=bias)
    tokens = normal(QUERIES, 1, HEAD_SIZE)
    weights = multi_head_weights(
        *(tokens, tokens, tokens, HEAD_SIZE, 2, layer.in_proj_weight, layer.in_proj_bias),
        *(None, None, False, 0.5, layer.out_proj.weight, layer.out_proj.bias, *more),
        **options,
    )
    return layer, weights


@pytest.mark.parametrize("need_weights", [True, False])
def test_those_of_several_heads_are_before_dropout_and_by_head(need_weights: bool) -> None:
    state = torch.get_rng_state()
    with torch.random.fork_rng(devices=[]):
        layer, weights = of_heads(bias=False, need_weights=need_weights)
        drawn = torch.get_rng_state()
        torch.set_rng_state(state)
        nn.MultiheadAttention(HEAD_SIZE, 2, dropout=0.5, bias=False)
        assert torch.equal(torch.get_rng_state(), drawn)  # a look draws nothing
    query, key, _ = (normal(QUERIES, 1, HEAD_SIZE)[:, 0] @ layer.in_proj_weight.T).chunk(3, -1)
    for head, part in enumerate((slice(0, 2), slice(2, 4))):
        own = by_hand(query[:, part], key[:, part], torch.zeros(QUERIES, QUERIES), 2**-0.5)
        torch.testing.assert_close(weights[0, head], own, atol=1e-6, rtol=0)


def test_the_hint_that_a_mask_is_causal_is_followed_as_torch_does() -> None:
    """Without weights PyTorch goes by the hint, and by the mask where weights are asked for."""
    nothing = torch.zeros(QUERIES, QUERIES)  # no causal mask at all
    for need_weights in (False, True):
        _, weights = of_heads(False, None, need_weights, nothing, is_causal=True)
        assert bool(weights[0].triu(1).any()) == need_weights


def vit_by_hand() -> nn.Module:
    network = vit()
    for module in network.modules():
        if hasattr(module, "fused_attn"):
            setattr(module, "fused_attn", False)  # noqa: B010 - no attribute that types know
    return network


ATTENDING: dict[str, tuple[Callable[[], nn.Module], str, str, int]] = {
    "fused": (vit, "blocks.1.attn", "proj", 3),
    "by hand": (vit_by_hand, "blocks.1.attn", "proj", 3),
    "multi-head": (torchvision_vit, "encoder.layers.encoder_layer_1.self_attention", "out_proj", 3),
    "windows": (swin, "layers.1.blocks.1.attn", "proj", 3),
    "functional": (torchvision_swin, "features.1.1.attn", "proj", 2),
}


def with_columns(network: nn.Module, projection: str, image: Tensor, scales: Tensor) -> Tensor:
    """What the network answers with the columns of a projection's weights scaled."""
    weight = network.get_submodule(projection).weight
    assert isinstance(weight, Tensor)
    kept = weight.detach().clone()
    with torch.no_grad():
        weight *= scales.to(weight.dtype).repeat_interleave(weight.shape[1] // len(scales))
        answer: Tensor = network(image)
        weight.copy_(kept)
    return answer


@pytest.mark.parametrize("kind", ATTENDING)
def test_edited_heads_are_scaled_columns_of_the_projection(kind: str) -> None:
    build, layer, projection, heads = ATTENDING[kind]
    network = seeded(build).eval().double()
    images = torch.cat([random_input(0, SIDE), random_input(1, SIDE)]).double()
    one = torch.arange(heads) == 1
    for edit, scales in (
        (edits.zero(heads=[1]), 1.0 - one.double()),
        (edits.keep(heads=[1]), one.double()),
        (edits.scale(3, heads=[0]), 1.0 + 2 * (torch.arange(heads) == 0)),
        (edits.scale(torch.arange(heads), heads=range(heads)), torch.arange(heads)),
    ):
        expected = with_columns(network, f"{layer}.{projection}", images, scales)
        with torch.no_grad(), hookviz.edit(network, {layer: edit}):
            found = network(images)
        torch.testing.assert_close(found, expected)
        assert (found - network(images)).abs().max() > 1e-6
    assert hook_count(network) == 0


def test_a_block_stands_for_what_attends_in_it_and_gradients_go_through() -> None:
    network = seeded(torchvision_vit).eval()
    image = random_input(0, SIDE).requires_grad_()
    block = "encoder.layers.encoder_layer_0"
    vector = torch.zeros((), requires_grad=True)
    with hookviz.edit(network, {block: edits.add(vector, heads=[2])}):
        network(image)[0, 1].backward()
    assert vector.grad is not None
    assert vector.grad != 0
    with hookviz.edit(network, {block: edits.zero(heads=[2])}):
        without = network(image)
    with hookviz.edit(network, {f"{block}.self_attention": edits.zero(heads=[2])}):
        torch.testing.assert_close(network(image), without)
    network = seeded(vit).eval()
    attending = {f"blocks.{number}.attn": edits.zero(heads=[2]) for number in (0, 1)}
    with hookviz.edit(network, attending):
        expected = network(image)
    with hookviz.edit(network, {"*": edits.zero(heads=[2])}):  # of all that attend
        assert torch.equal(network(image), expected)
        network.get_submodule("patch_embed")(image)  # alone: no pass has ended
    assert not torch.equal(network(image), expected)
    assert hook_count(network) == 0


def test_a_model_with_edited_heads_is_looked_at_like_any_other() -> None:
    network = seeded(vit).eval()
    model = hookviz.wrap(network, hookviz.Preprocess(resize=SIDE, crop=SIDE))
    changed = hookviz.edited(model, {"blocks.0": edits.zero(heads=[0, 1, 2])})
    image = random_input(0, SIDE)[0]
    raw = hookviz.capture(changed, image, "blocks.0.attn.proj")["blocks.0.attn.proj"].raw
    bias = network.get_submodule("blocks.0.attn.proj").bias
    assert isinstance(bias, Tensor)
    assert torch.equal(raw, bias.detach().expand_as(raw))
    weights = hookviz.attention(changed, image).weights
    before = hookviz.attention(model, image).weights
    assert torch.equal(weights["blocks.0.attn"], before["blocks.0.attn"])
    assert not torch.allclose(weights["blocks.1.attn"], before["blocks.1.attn"])


@pytest.mark.parametrize(
    ("layer", "edit", "words"),
    [
        ("patch_embed", lambda: edits.zero(heads=[0]), "Nothing attends in 'patch_embed'"),
        ("*.mlp*", lambda: edits.zero(heads=[0]), "Nothing attends in 'blocks.0.mlp'"),
        ("blocks.0", lambda: edits.zero(heads=[3]), "There is no head 3 .*: they go from 0 to 2"),
        ("blocks.0", lambda: edits.add([1.0, 2.0], heads=[0]), r"3 numbers \(one a head\)"),
        ("blocks.0", lambda: edits.zero(heads=[-1]), r"heads=\[-1\] are no numbers of heads"),
        ("blocks.0", lambda: edits.zero(heads=[1], cells=[2]), "leave channels= and cells= out"),
        ("blocks.0", edits.keep, r"keep\(\) keeps nothing"),
    ],
)
def test_heads_that_are_not_there_are_refused(
    layer: str, edit: Callable[[], Any], words: str
) -> None:
    network = seeded(vit).eval()
    with pytest.raises(SettingError, match=words), hookviz.edit(network, {layer: edit()}):
        network(random_input(0, SIDE))
    assert hook_count(network) == 0


@pytest.mark.parametrize(
    ("shape", "equation", "declared", "axis"),
    [
        ((2, 3, 17, 8), None, None, 1),
        ((3, 2, 17, 8), None, 3, 0),
        ((2, 3, 4, 16, 8), None, 3, 1),
        ((2, 3, 3, 16, 8), None, 3, None),
        ((6, 17, 8), None, None, None),
        ((2, 17, 3, 8), "bhqk,bkhd->bqhd", None, 2),
        ((6, 17, 8), "b i j, b j d -> b i d", None, None),
    ],
)
def test_the_axis_of_heads_is_known_or_not_guessed(
    shape: tuple[int, ...], equation: str | None, declared: int | None, axis: int | None
) -> None:
    assert head_axis(shape, equation, declared) == axis


def test_heads_folded_into_the_batch_are_told_by_what_the_module_says() -> None:
    class Folded(nn.Module):
        num_heads = 3

        def forward(self, tokens: Tensor) -> Tensor:
            count, length, _ = tokens.shape
            heads = tokens.reshape(count, length, 3, -1).transpose(1, 2).flatten(0, 1)
            mixed = torch.bmm(torch.bmm(heads, heads.mT).softmax(-1), heads)
            return mixed.reshape(count, 3, length, -1).transpose(1, 2).flatten(2)

    network, tokens = Folded(), torch.rand(2, 5, 12)
    with hookviz.edit(network, {"": edits.zero(heads=[1])}):
        found = network(tokens)
    expected = network(tokens)
    expected[..., 4:8] = 0
    assert torch.equal(found, expected)
