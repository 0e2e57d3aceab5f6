"""The layers as a tree: every layer once, in its stage or in the block that it is a part of."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hookviz
from hookviz.drawing.grid import make_grid
from hookviz.explaining.receptive_fields.receptive_field import receptive_fields
from hookviz.explorer.layer_tree import layer_tree, previews_of
from hookviz.types import Model


@pytest.fixture(scope="module")
def model() -> Model:
    return hookviz.load_model("shapesnet")


def names(parts: list[dict[str, Any]]) -> Iterator[str]:
    for part in parts:
        if "name" in part:
            yield part["name"]
        yield from names(part.get("parts", []))


def test_conv_layers_stand_in_their_stages(model: Model) -> None:
    layers = hookviz.list_layers(model)
    facts = layer_tree(model, layers, {}, None, chosen="stem.first.conv", by_block=False)
    assert list(names(facts["parts"])) == [layer.name for layer in layers]
    assert {part["stage"] for part in facts["parts"]} == {layer.stage for layer in layers}
    first = facts["parts"][0]["parts"][0]
    assert (first["number"], first["short"]) == (1, "first.conv")
    assert first["shape"] == "7×7 /2 · 32×64×64"
    assert "unknown" in first["work"]  # no receptive fields were given
    assert facts["previews"] is None


def test_parts_stand_in_their_innermost_block(model: Model) -> None:
    layers = hookviz.list_layers(model, kind="maps")
    fields = receptive_fields(model, (3, 128, 128))
    facts = layer_tree(model, layers, fields, None, chosen="stem", by_block=True)
    assert sorted(names(facts["parts"])) == sorted(layer.name for layer in layers)

    def check(part: dict[str, Any], parent: str) -> None:
        assert part["name"].startswith(parent)
        assert part["short"] == part["name"].removeprefix(parent)
        for inner in part.get("parts", []):
            check(inner, f"{part['name']}.")

    for part in facts["parts"]:
        check(part, "")
    assert "sees 7×7 px" in next(part["work"] for part in facts["parts"][0]["parts"])


def test_a_layers_preview_begins_at_its_corner() -> None:
    small = np.zeros((3, 4, 4), np.float32)
    small[2, 0, 0] = 1
    grid = make_grid(small, scale="channel", aspect=1.0)
    previews = previews_of(grid, ["a", "b", "c"])
    assert previews.side == 4
    assert len(set(previews.corners.values())) == 3
    assert all(
        x + 4 <= previews.size[0] and y + 4 <= previews.size[1]
        for x, y in previews.corners.values()
    )
