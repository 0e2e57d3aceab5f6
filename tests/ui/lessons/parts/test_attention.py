"""What the heads weigh, against softmax(QKᵀ/√d) by hand, and what networks without patches say."""

import math
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor

import hookviz
from hookviz.lessons.part import LessonScene
from hookviz.ui.lessons.parts.attention import (
    CELL,
    PART,
    Attending,
    attending,
    cell_text,
    first_query,
)
from tests.lessons.conftest import scene_of
from tests.ui.lessons.parts.scenes import star, with_defaults


@cache
def patches() -> LessonScene:
    """ShapesViT and the drawn star."""
    return scene_of(hookviz.load_model("shapesvit"), "star")


@cache
def by_hand() -> tuple[Tensor, ...]:
    """The weights of each block, ``(heads, queries, keys)``."""
    network, found = patches().model.network, []
    with torch.no_grad():
        tokens = network.tokens(patches().model_input.tensor)  # type: ignore[operator]
        for block in network.blocks:  # type: ignore[union-attr]
            queries, keys, _ = block.attn.qkv(block.norm1(tokens))[0].split(96, dim=1)
            scores = [
                queries[:, at : at + 24] @ keys[:, at : at + 24].T / math.sqrt(24)
                for at in range(0, 96, 24)
            ]
            found.append(torch.stack(scores).softmax(2))
            tokens = block(tokens)
    return tuple(found)


def test_places_are_layers_in_their_order() -> None:
    names = tuple(f"blocks.{block}.attn" for block in range(4))
    for place, block in {"first": 0, "middle": 1, "last": 3, "blocks.2.attn": 2, "none": 3}.items():
        layer = attending(patches(), place)
        assert layer is not None
        assert (layer.layer, layer.layers) == (names[block], names)
        assert (layer.rows, layer.columns, layer.prefix) == (8, 8, 1)
        np.testing.assert_allclose(layer.weights, by_hand()[block].numpy(), atol=1e-5)


@pytest.mark.parametrize(
    ("layer", "picked", "block", "row", "column"),
    [("first", {}, 0, 4, 4), ("last", {CELL: cell_text(0, 7)}, 3, 0, 7)],
)
def test_facts_are_of_the_patch_and_the_layer_that_are_picked(
    layer: str, picked: dict[str, str], block: int, row: int, column: int
) -> None:
    facts = PART.facts(patches(), {**with_defaults(PART, layer=layer), **picked})
    weights = by_hand()[block][:, 1 + 8 * row + column]
    assert (facts["row"], facts["column"]) == (row, column)
    assert (facts["tokens"], facts["patches"], facts["heads"], facts["layers"]) == (65, 64, 4, 4)
    assert facts["top_head"] == int(weights.max(1).values.argmax())
    assert facts["top"] == pytest.approx(float(weights.max()), abs=1e-5)
    assert facts["times"] == pytest.approx(65 * float(weights.max()), abs=1e-3)
    mean = weights.mean(0)[1:].view(8, 8)
    beside = mean[max(row - 1, 0) : row + 2, column - 1 : column + 2]
    assert facts["near"] == pytest.approx(float(beside.sum()), abs=1e-5)
    assert facts["near_even"] == pytest.approx(beside.numel() / 65)
    assert facts["even"] == pytest.approx(1 / 65)
    assert float(weights.min()) > 0  # as the lesson's answers say
    assert facts["near"] > facts["near_even"]  # type: ignore[operator]


def test_half_of_what_the_class_token_gives_to_patches() -> None:
    options = with_defaults(PART, asks="class")
    facts = PART.facts(patches(), options)
    shares = sorted(by_hand()[3][:, 0].mean(0)[1:].tolist(), reverse=True)
    fewest = next(count for count in range(65) if sum(shares[:count]) >= sum(shares) / 2)
    assert facts["half"] == fewest
    assert PART.link(patches(), options) == {"layer": facts["layer"]} == {"layer": "blocks.3.attn"}


def test_weights_lie_where_their_patches_lie() -> None:
    weights = np.arange(2 * 7 * 7, dtype=np.float32).reshape(2, 7, 7)
    layer = Attending("attn", ("attn",), weights, 2, 3, prefix=1)
    assert layer.query_at(1, 2) == 6
    assert layer.maps(6)[1].tolist() == [[92, 93, 94], [95, 96, 97]]
    assert first_query(layer, "class", (1, 1)) == 0
    assert first_query(layer, "patch", (1, 1)) == layer.query_at(1, 1)
    without_token = Attending("attn", ("attn",), weights[:, 1:, 1:], 2, 3, prefix=0)
    assert first_query(without_token, "class", (1, 1)) == 4


def test_a_network_without_patches_has_dashes() -> None:
    options = with_defaults(PART)
    facts = PART.facts(star(), options)
    assert set(facts.values()) == {"–"}
    assert facts.keys() == PART.facts(patches(), options).keys()
    assert PART.link(star(), options) == {}
