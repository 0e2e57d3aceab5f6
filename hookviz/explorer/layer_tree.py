"""Describe a network's layers as a tree, with their facts and small pictures."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hookviz.drawing.grid import Grid
from hookviz.explaining.layers.layer_description import amount, field_text, kernel_text
from hookviz.explaining.receptive_fields.receptive_field import ReceptiveField
from hookviz.language.saying import say
from hookviz.markup import data_url
from hookviz.types import LayerInfo, Model
from hookviz.wording import times

_Row = dict[str, Any]
_Rows = list[tuple[LayerInfo, _Row]]


class Previews(NamedTuple):
    """Small pictures of layers, side by side in one picture.

    Attributes:
        picture: the one picture, as a URL of its data.
        size: its width and height in pixels.
        side: of each small picture.
        corners: where in it the one of each layer begins, by the layer's name.
    """

    picture: str
    size: tuple[int, int]
    side: int
    corners: dict[str, tuple[int, int]]


def previews_of(grid: Grid, layers: Sequence[str]) -> Previews:
    """Return a grid of small square maps, one for each of the layers, as their pictures."""
    geometry = grid.sprite_geometry
    return Previews(
        picture=data_url(grid.sprite),
        size=(geometry.width, geometry.height),
        side=geometry.tile_width,
        corners={name: geometry.box(index)[:2] for index, name in enumerate(layers)},
    )


def layer_tree(
    model: Model,
    layers: Sequence[LayerInfo],
    fields: Mapping[str, ReceptiveField],
    previews: Previews | None,
    *,
    chosen: str,
    by_block: bool,
) -> dict[str, Any]:
    """Describe the layers by stage or, `by_block`, in the blocks that they are parts of.

    Args:
        model: whose layers.
        layers: those on offer, in order of execution.
        fields: receptive fields by layer; of those that are missing it says so.
        previews: their small pictures, if there are any.
        chosen: name of the one that is looked at.
        by_block: whether blocks are among the layers, and have their parts inside.
    """
    rows = [(layer, _row(layer, fields.get(layer.name))) for layer in layers]
    return {
        "network": f"{model.name}/{model.digest}/{layers[0].input_shape}/{len(layers)}",
        "parts": _nested(rows) if by_block else _staged(rows),
        "previews": previews and previews._asdict(),
        "chosen": chosen,
    }


def _staged(rows: _Rows) -> list[_Row]:
    """Put the rows into stages, which have a name and `parts`, and are no layers themselves."""
    stages: dict[str, list[_Row]] = {}
    for layer, row in rows:
        short = layer.name.removeprefix(f"{layer.stage}.") or layer.name
        stages.setdefault(layer.stage, []).append(row | {"short": short})
    return [{"stage": name, "parts": parts} for name, parts in stages.items()]


def _nested(rows: _Rows) -> list[_Row]:
    """Put each row into the `parts` of the innermost block's row that it is in, if any."""
    by_name = {layer.name: row for layer, row in rows}
    top: list[_Row] = []
    for name, row in by_name.items():
        ends = (end for end in range(len(name) - 1, 0, -1) if name[end] == ".")
        block = next((name[:end] for end in ends if name[:end] in by_name), None)
        row["short"] = name if block is None else name.removeprefix(f"{block}.")
        (top if block is None else by_name[block].setdefault("parts", [])).append(row)
    return top


def _row(layer: LayerInfo, field: ReceptiveField | None) -> _Row:
    weights, work = amount(layer.parameters), amount(layer.multiply_adds)
    facts = [say("{weights} weights", weights=weights)] * bool(layer.parameters)
    facts += [say("{amount} multiply-adds", amount=work)] * bool(layer.multiply_adds)
    sees = field_text(field)
    return {
        "name": layer.name,
        "number": layer.index + 1,
        "shape": f"{kernel_text(layer)} · {times(layer.output_shape)}",
        "work": " · ".join((sees, *facts)),
        "title": f"{layer.index + 1} {layer.name}: {', '.join((kernel_text(layer), *facts, sees))}",
    }
