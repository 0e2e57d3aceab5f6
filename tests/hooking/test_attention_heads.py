"""Edits of attention heads, held against the columns of the output projection by hand."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz import edits
from hookviz.errors import SettingError
from hookviz.hooking.attention_heads import head_axis
from tests.networks import hook_count, random_input, seeded
from tests.small_transformers import SIDE, swin, torchvision_swin, torchvision_vit, vit


def by_hand() -> nn.Module:
    network = vit()
    for module in network.modules():
        if hasattr(module, "fused_attn"):
            setattr(module, "fused_attn", False)  # noqa: B010 - no attribute that types know
    return network


ATTENDING: dict[str, tuple[Callable[[], nn.Module], str, str, int]] = {
    "fused": (vit, "blocks.1.attn", "proj", 3),
    "by hand": (by_hand, "blocks.1.attn", "proj", 3),
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
