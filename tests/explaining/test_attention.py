"""Attention weights of whole networks, against softmax(QKᵀ/√d + bias) from plain PyTorch hooks."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import timm
import torch
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models import VisionTransformer, swin_t

import hookviz
from hookviz.explaining.attention import Attention
from hookviz.types import Model, Preprocess
from tests.networks import all_hooks, as_model, random_input, seeded
from tests.unharmed import generators, settings_of_torch, snapshot

EXACT = {"atol": 1e-6, "rtol": 0.0}


def vit() -> VisionTransformer:
    return VisionTransformer(
        image_size=16, patch_size=4, num_layers=3, num_heads=4, hidden_dim=16, mlp_dim=16
    )


def model_of(network: nn.Module, side: int) -> Model:
    return hookviz.wrap(network, Preprocess(resize=side, crop=side))


def plain_pass(network: nn.Module, image: Tensor) -> tuple[Tensor, dict[str, tuple[Tensor, Tensor]]]:
    """What a network puts out, and what each module of it is given first and puts out."""
    seen: dict[str, tuple[Tensor, Tensor]] = {}
    network = network.eval()
    handles = []
    for name, module in network.named_modules():

        def hook(_: nn.Module, given: Any, output: Any, name: str = name) -> None:
            if given and isinstance(output, Tensor):
                seen[name] = (given[0].clone(), output.clone())

        handles.append(module.register_forward_hook(hook))
    with torch.no_grad():
        output = network(image)
    for handle in handles:
        handle.remove()
    return output, seen


def by_hand(qkv: Tensor, heads: int, bias: Tensor | float = 0.0) -> Tensor:
    """Weights from (…, tokens, 3·C), which holds queries, keys and values, each head by head."""
    query, key, _ = qkv.unflatten(-1, (3, heads, -1)).unbind(-3)
    query, key = query.transpose(-2, -3), key.transpose(-2, -3)
    weights: Tensor = (query @ key.mT / query.shape[-1] ** 0.5 + bias).softmax(-1)
    return weights.detach()


def windows_of(maps: Tensor, side: int, shift: int) -> Tensor:
    """(H, W, C) as (windows, side², C), rolled by the shift before it is cut."""
    rolled = maps.roll((-shift, -shift), (0, 1))
    rows = rolled.unflatten(0, (-1, side)).unflatten(2, (-1, side))
    return rows.transpose(1, 2).flatten(0, 1).flatten(1, 2)


def shift_mask(side: int, window: int, shift: int) -> Tensor:
    """(windows, 1, tokens, tokens): −100 between what lies on different edges of the map."""
    if not shift:
        return torch.zeros(1)
    wrapped = (torch.arange(side) + shift >= side).long()  # of places after the roll
    part = (wrapped[:, None] * 2 + wrapped)[..., None]
    part = windows_of(part, window, 0)[..., 0]
    return -100.0 * (part[:, None, :, None] != part[:, None, None, :])


def test_torchvisions_vit_attends_as_computed_by_hand() -> None:
    network, image = seeded(vit), random_input(0)
    found = hookviz.attention(as_model(network), image)
    names = [f"encoder.layers.encoder_layer_{number}.self_attention" for number in range(3)]
    assert list(found) == names
    output, seen = plain_pass(network, image)
    for name in names:
        layer = network.get_submodule(name)
        tokens = seen[name.replace("self_attention", "ln_1")][1][0]
        own = by_hand(functional.linear(tokens, layer.in_proj_weight, layer.in_proj_bias), 4)
        assert found[name].dtype == torch.float32
        torch.testing.assert_close(found[name], own, **EXACT)
    assert found.logits is not None
    torch.testing.assert_close(found.logits, output[0], **EXACT)


def test_torchvisions_swin_attends_within_its_shifted_windows() -> None:
    network, image = seeded(lambda: swin_t(weights=None)), random_input(0, 112)
    found = hookviz.attention(model_of(network, 112), image, ["features.1", "features.3.1"])
    assert list(found) == ["features.1.0.attn", "features.1.1.attn", "features.3.1.attn"]
    _, seen = plain_pass(network, image)
    for name, weights in found.items():
        layer = network.get_submodule(name)
        maps, shift = seen[name][0][0], layer.shift_size[0]
        assert shift == 3 * int(name.endswith("1.attn"))
        qkv = functional.linear(windows_of(maps, 7, shift), layer.qkv.weight, layer.qkv.bias)
        bias = layer.get_relative_position_bias() + shift_mask(len(maps), 7, shift)
        assert weights.ndim == 4
        torch.testing.assert_close(weights, by_hand(qkv, layer.num_heads, bias), **EXACT)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "deit_tiny_distilled_patch16_224"])
def test_timms_vits_attend_so_fused_and_not(name: str, fused: bool) -> None:
    network = seeded(lambda: timm.create_model(name, img_size=64, depth=2))
    for block in network.blocks:
        assert isinstance(block.attn.fused_attn, bool)
        block.attn.fused_attn = fused
    image = random_input(0, 64)
    found = hookviz.attention(model_of(network, 64), image)
    output, seen = plain_pass(network, image)
    assert list(found) == ["blocks.0.attn", "blocks.1.attn"]
    for layer, weights in found.items():
        assert weights.shape == (3, 16 + network.num_prefix_tokens, 16 + network.num_prefix_tokens)
        own = by_hand(seen[f"{layer}.qkv"][1][0], 3)
        torch.testing.assert_close(weights, own, **EXACT)
    assert found.logits is not None
    torch.testing.assert_close(found.logits, output[0], **EXACT)


@pytest.mark.parametrize("fused", [True, False])
def test_timms_swin_attends_so_fused_and_not(fused: bool) -> None:
    network = seeded(
        lambda: timm.create_model(
            "swin_tiny_patch4_window7_224", img_size=112, depths=(2, 2), num_heads=(3, 6)
        )
    )
    for module in network.modules():
        if hasattr(module, "fused_attn"):
            module.fused_attn = fused
    image = random_input(0, 112)
    found = hookviz.attention(model_of(network, 112), image)
    _, seen = plain_pass(network, image)
    assert len(found) == 4
    for layer, weights in found.items():
        attn = network.get_submodule(layer)
        stage, shift = int(layer.split(".")[1]), 3 * int(layer.endswith("1.attn"))
        bias = attn._get_rel_pos_bias() + shift_mask((28, 14)[stage], 7, shift)
        own = by_hand(seen[f"{layer}.qkv"][1], attn.num_heads, bias)
        torch.testing.assert_close(weights, own, **EXACT)


class Patches(nn.Module):
    """Patches of an image as tokens for `mix`, and five classes from their mean."""

    def __init__(self, mix: nn.Module, width: int = 8) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.mix = mix
        self.head = nn.Linear(width, 5)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.mix(self.patches(images).flatten(2).mT)
        scores: Tensor = self.head(tokens.mean(1))
        return scores


class SelfAttention(nn.Module):
    """`nn.MultiheadAttention` that is asked for no weights, as its fast path wants it."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        mixed: Tensor = self.attention(tokens, tokens, tokens, need_weights=False)[0]
        return mixed


class Padded(nn.Module):
    """An encoder that takes the last three of its 16 tokens for padding, and leaves them out."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = encoder()

    def forward(self, tokens: Tensor) -> Tensor:
        padding = torch.zeros(tokens.shape[:2], dtype=torch.bool, device=tokens.device)
        padding[:, 13:] = True
        mixed: Tensor = self.encoder(tokens, src_key_padding_mask=padding)
        return mixed[:, :13]


def encoder() -> nn.TransformerEncoder:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> Iterator[list[str]]:
    """Names a fused kernel of torch each time that it is called."""
    calls: list[str] = []
    function = getattr(torch, name)

    def call(*args: Any) -> Any:
        calls.append(name)
        return function(*args)

    with monkeypatch.context() as patch:
        patch.setattr(torch, name, call)
        yield calls


FAST = {
    "encoder": (encoder, "_transformer_encoder_layer_fwd", "mix.layers.0.self_attn", 2),
    "padded": (Padded, "_transformer_encoder_layer_fwd", "mix.encoder.layers.0.self_attn", 2),
    "attention": (SelfAttention, "_native_multi_head_attention", "mix.attention", 1),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("way", FAST)
def test_torchs_fast_paths_are_left_where_somebody_looks_and_there_alone(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mix, kernel, layer, calls = FAST[way]
    network = seeded(lambda: Patches(mix())).eval().requires_grad_(False)
    model, image = as_model(network), random_input(0)
    with counted(monkeypatch, kernel) as fused:
        output = network(image)
        assert len(fused) == calls
        found = hookviz.attention(model, image)
        assert len(fused) == calls
        torch.testing.assert_close(model.network(image), output, **EXACT)
        assert len(fused) == 2 * calls
    assert len(found) == calls
    tokens = network.patches(image).flatten(2).mT[0]
    attends = network.get_submodule(layer)
    bias = torch.zeros(16)
    if way == "padded":
        bias[13:] = -torch.inf
    qkv = functional.linear(tokens, attends.in_proj_weight, attends.in_proj_bias)
    torch.testing.assert_close(found[layer], by_hand(qkv, 2, bias), **EXACT)
    assert found.logits is not None
    torch.testing.assert_close(found.logits, output[0], **EXACT)


class Cross(nn.Module):
    """Four tokens attend to all, but not to every other one; then again, each to what is before."""

    def __init__(self) -> None:
        super().__init__()
        self.queries, self.keys = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, tokens: Tensor) -> Tensor:
        query, key, value = (
            part.unflatten(-1, (2, 4)).transpose(1, 2)
            for part in (self.queries(tokens[:, :4]), self.keys(tokens), tokens)
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
    query = seen["mix.queries"][1][0].unflatten(-1, (2, 4)).transpose(0, 1)
    key = seen["mix.keys"][1][0].unflatten(-1, (2, 4)).transpose(0, 1)
    bias = torch.where(torch.arange(16) % 2 == 0, 0.0, -torch.inf)
    own = (query @ key.mT / 2 + bias).softmax(-1)
    torch.testing.assert_close(found["mix"], own, **EXACT)
    mixed = own @ seen["mix"][0][0].unflatten(-1, (2, 4)).transpose(0, 1)
    causal = torch.full((4, 4), -torch.inf).triu(1)
    own = (mixed @ mixed.mT / 2 + causal).softmax(-1)
    torch.testing.assert_close(found["mix#1"], own, **EXACT)
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
        torch.testing.assert_close(found[""], (tokens @ tokens.mT).softmax(-1)[None], **EXACT)


def test_weights_are_computed_for_the_layers_asked_for_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    computed = []
    import hookviz.hooking.attention_calls as calls

    function = calls.multi_head_weights

    def count(*args: Any, **kwargs: Any) -> Tensor:
        computed.append(True)
        return function(*args, **kwargs)

    monkeypatch.setattr(calls, "multi_head_weights", count)
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
    assert not model.network.training


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
    assert list(found) == [f"_orig_mod.{layer}" for layer in own]
    for layer, weights in own.items():
        torch.testing.assert_close(found[f"_orig_mod.{layer}"], weights, **EXACT)


def test_what_attends_nowhere_is_told(tiny: Model, noise: Tensor) -> None:
    with pytest.raises(hookviz.ModelError, match=r"Tiny computes no attention.*vit_b_16.*grad-cam"):
        hookviz.attention(tiny, noise)
    model, image = as_model(seeded(vit)), random_input(0)
    with pytest.raises(hookviz.ModelError, match=r"'encoder.ln' of .*attends. These do: .*_2\.self"):
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


def test_rollout_is_that_of_abnar_and_zuidema() -> None:
    found = hookviz.attention(as_model(seeded(vit)), random_input(0))
    flow = np.eye(17)
    for weights in found.values():
        raw = np.mean([head.numpy() for head in weights], axis=0, dtype=np.float64)
        residual = raw + np.eye(17)
        flow = residual / residual.sum(axis=-1, keepdims=True) @ flow
    rolled = found.rollout()
    np.testing.assert_allclose(rolled.numpy(), flow, atol=1e-6)
    torch.testing.assert_close(rolled.sum(1), torch.ones(17), **EXACT)


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
        Attention("ours", model_input, weights, None).rollout()


