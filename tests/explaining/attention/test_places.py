"""Where queries and keys lie: against windows cut by hand, and nowhere where cells are mixed."""

from collections.abc import Callable
from typing import Any

import pytest
import timm
import torch
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models import SwinTransformer

import hookviz
from hookviz.drawing.attention_panel import CLASS_TOKEN, head_maps
from hookviz.explaining.attention.places import (
    NOWHERE,
    AttentionFactors,
    AttentionPlaces,
    attention_places,
)
from hookviz.hooking import hooks
from hookviz.types import ActivationKey, Model
from tests.attending import Patches, assert_same, in_heads, model_of, vit, windows_of
from tests.networks import as_model, random_input, seeded


def places_of(model: Model, image: Tensor, layer: str) -> tuple[AttentionPlaces | None, Tensor]:
    found = hookviz.attention(model, image, layer)
    (address,) = found
    return attention_places(model, found.model_input, address, found[address]), found[address]


def maps_at(places: AttentionPlaces, weights: Tensor, query: int) -> Tensor:
    """What a query attends to, as the lens draws it."""
    by_window = places.by_window(weights).numpy()
    cells = places.queries.numpy(), places.keys.numpy()
    return torch.from_numpy(head_maps(by_window, *cells, places.grid, query))


def test_the_tokens_of_a_vit_are_its_patches_behind_the_class_token() -> None:
    layer = "encoder.layers.encoder_layer_1"
    places, weights = places_of(as_model(seeded(vit)), random_input(0), layer)
    assert places is not None
    assert places.grid == (4, 4)
    for cells in (places.queries, places.keys):
        assert cells.tolist() == [[NOWHERE, *range(16)]]
    assert places.class_token == 0
    assert torch.equal(maps_at(places, weights, 6), weights[:, 7, 1:].reshape(4, 4, 4))
    class_map = maps_at(places, weights, CLASS_TOKEN)
    assert torch.equal(class_map, weights[:, 0, 1:].reshape(4, 4, 4))


def swin() -> SwinTransformer:
    sizes: Any = {"embed_dim": 8, "depths": [2], "num_heads": [2], "num_classes": 5}
    return SwinTransformer([4, 4], window_size=[3, 3], **sizes)


@pytest.mark.parametrize(
    ("block", "side"),
    [(0, 24), (1, 20)],
    ids=["whole windows", "shifted windows, padded"],
)
def test_windows_are_where_swin_cuts_them_out(block: int, side: int) -> None:
    image = random_input(0, side)
    layer = f"features.1.{block}.attn"
    places, weights = places_of(model_of(seeded(swin), side), image, layer)
    assert places is not None
    cells = side // 4
    assert places.grid == (cells, cells)
    numbers = torch.full((6, 6), NOWHERE)  # the padding comes before the shift
    numbers[:cells, :cells] = torch.arange(cells * cells).reshape(cells, cells)
    expected = windows_of(numbers[..., None], 3, block)[..., 0]
    assert torch.equal(places.queries, expected)
    assert torch.equal(places.keys, expected)
    assert weights.shape == (4, 2, 9, 9)
    window, number = (expected == 7).nonzero()[0].tolist()
    laid = maps_at(places, weights, 7)
    assert laid.shape == (2, cells, cells)
    for key, cell in enumerate(expected[window].tolist()):
        if cell >= 0:
            value = weights[window, :, number, key]
            assert torch.equal(laid[:, cell // cells, cell % cells], value)
    assert int(laid[0].isfinite().sum()) == int((expected[window] >= 0).sum())


def test_windows_that_a_block_cuts_for_its_attention_are_found_too() -> None:
    sizes = {"img_size": 32, "window_size": 4, "depths": (2,), "num_heads": (2,), "embed_dim": 8}
    network = seeded(lambda: timm.create_model("swin_tiny_patch4_window7_224", **sizes))
    model = model_of(network, 32)
    for block, shift in ((0, 0), (1, 2)):
        places, _ = places_of(model, random_input(0, 32), f"layers.0.blocks.{block}")
        assert places is not None
        expected = windows_of(torch.arange(64).reshape(8, 8, 1), 4, shift)[..., 0]
        assert torch.equal(places.queries, expected)


class Attending(nn.Module):
    """Attention among tokens in an order that the class chooses."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 8)

    def keys(self, tokens: Tensor) -> Tensor:
        return tokens

    def forward(self, tokens: Tensor) -> Tensor:
        queries = in_heads(self.project(tokens))
        keys = in_heads(self.keys(self.project(tokens)))
        return ((queries @ keys.mT).softmax(-1) @ keys).transpose(1, 2).flatten(2)


class Backwards(Attending):
    def keys(self, tokens: Tensor) -> Tensor:
        return tokens.flip(1)


class Pooled(Attending):
    def keys(self, tokens: Tensor) -> Tensor:
        return torch.unflatten(tokens, 1, (4, 4)).mean(2)


def places_behind_a_norm(attending: type[nn.Module]) -> tuple[AttentionPlaces | None, Tensor]:
    network = seeded(lambda: Patches(nn.Sequential(nn.LayerNorm(8), attending())))
    return places_of(as_model(network), random_input(0), "")


def test_another_order_of_tokens_is_followed_and_keys_of_several_cells_lie_nowhere() -> None:
    places, weights = places_behind_a_norm(Backwards)
    assert places is not None
    assert places.queries.tolist() == [list(range(16))]
    assert places.keys.tolist() == [list(range(15, -1, -1))]
    assert places.class_token is None
    assert_same(maps_at(places, weights, 3), weights[:, 3].flip(-1).reshape(2, 4, 4))
    assert places_behind_a_norm(Pooled)[0] is None


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


def test_the_pass_ends_at_the_call_asked_for_and_other_products_have_no_factors() -> None:
    calls, tokens, layer = found(WRITTEN["matmul"], 1)
    assert calls.factors is not None
    with torch.no_grad():
        once = layer.mix(layer.queries(tokens), layer.keys(tokens[:, :3]), tokens[:, :3])
    torch.testing.assert_close(calls.factors[0], once)
    calls, _, _ = found(lambda q, k, v: torch.einsum("bid,bjd->bji", q, k).softmax(-2).mT @ v, 0)
    assert calls.factors is None
