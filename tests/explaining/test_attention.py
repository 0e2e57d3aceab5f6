"""What `hookviz.attention` gives, of which layers, what it leaves alone, and what it refuses."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import hookviz
from hookviz.hooking.attention_weights import multi_head_weights
from hookviz.types import Model
from tests.attending import Patches, assert_same, in_heads, plain_pass, vit
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


def test_weights_are_computed_for_the_layers_asked_for_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    computed = []

    def count(*args: Any, **kwargs: Any) -> Tensor:
        computed.append(True)
        return multi_head_weights(*args, **kwargs)

    monkeypatch.setattr("hookviz.hooking.attention_calls.multi_head_weights", count)
    model, image = as_model(seeded(vit)), random_input(0)
    layer = "encoder.layers.encoder_layer_1"
    found = hookviz.attention(model, image, layer)
    assert list(found) == [f"{layer}.self_attention"]
    assert len(computed) == 1
    every = hookviz.attention(model, image)
    assert torch.equal(found[f"{layer}.self_attention"], every[f"{layer}.self_attention"])


def test_nothing_of_the_network_and_the_process_is_changed() -> None:
    model, image = as_model(seeded(vit)), random_input(0)
    before = snapshot(model.network), generators(), settings_of_torch()
    hookviz.attention(model, image)
    assert (snapshot(model.network), generators(), settings_of_torch()) == before
    assert all_hooks(model) == 0
    assert model.network.training


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


def test_a_compiled_network_is_looked_at_as_the_one_that_it_was_made_of() -> None:
    network, image = seeded(vit), random_input(0)
    own = hookviz.attention(as_model(network), image)
    found = hookviz.attention(as_model(torch.compile(network, backend="eager")), image)  # type: ignore[arg-type]
    assert list(found) == list(own)
    for layer, weights in own.items():
        assert_same(found[layer], weights)


def test_what_attends_nowhere_is_told(tiny: Model, noise: Tensor) -> None:
    with pytest.raises(hookviz.ModelError, match=r"Tiny computes no attention.*vit_b_16"):
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
