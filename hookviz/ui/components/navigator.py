"""The network's layers as a tree by stage, with small pictures and facts, to find and pick one."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import streamlit as st

from hookviz.drawing.grid import Grid
from hookviz.explaining.layer_facts import amount, field_text, kernel_text
from hookviz.explaining.receptive_field import ReceptiveField
from hookviz.types import LayerInfo, Model
from hookviz.ui.components.files import data_url, script, source
from hookviz.wording import times


@cache
def _component() -> Any:
    return st.components.v2.component(
        "hookviz_navigator", css=source("navigator.css"), js=script("navigator.js")
    )


def navigator(
    model: Model,
    layers: Sequence[LayerInfo],
    fields: Mapping[str, ReceptiveField],
    previews: Grid | None,
    *,
    chosen: str,
    on_pick: Callable[[str], None],
) -> None:
    """Show the layers by stage; `on_pick` gets the name of the one that a person picks.

    `previews` has one map for each conv layer, in their order.
    """

    def picked() -> None:
        name = st.session_state["navigator"].get("picked")
        if name in {layer.name for layer in layers}:
            on_pick(name)

    stages: dict[str, list[dict[str, str]]] = {}
    for layer in layers:
        stages.setdefault(layer.stage, []).append(_row(layer, fields.get(layer.name)))
    _component()(
        key="navigator",
        data={
            "network": f"{model.name}/{model.digest}/{layers[0].input_shape}/{len(layers)}",
            "stages": [{"name": name, "layers": rows} for name, rows in stages.items()],
            "previews": previews and _thumbnails(previews, layers),
            "chosen": chosen,
        },
        on_picked_change=picked,
    )


def _row(layer: LayerInfo, field: ReceptiveField | None) -> dict[str, str]:
    work = f"{amount(layer.parameters)} weights · {amount(layer.multiply_adds)} mult-adds"
    return {
        "name": layer.name,
        "short": layer.name.removeprefix(f"{layer.stage}.") or layer.name,
        "shape": f"{kernel_text(layer)} · {times(layer.output_shape)}",
        "work": f"{field_text(field)} · {amount(layer.parameters)} · {amount(layer.multiply_adds)}",
        "title": f"{layer.name}: {kernel_text(layer)}, {work}, {field_text(field)}",
    }


def _thumbnails(previews: Grid, layers: Sequence[LayerInfo]) -> dict[str, Any]:
    """The one picture, and where in it the map of each conv layer begins, by the layer's name."""
    geometry = previews.geometry
    convs = (layer.name for layer in layers if layer.kernel_size)
    return {
        "picture": data_url(previews.png()),
        "size": [geometry.width, geometry.height],
        "side": geometry.tile_width * geometry.magnification,
        "corners": {name: geometry.box(index)[:2] for index, name in enumerate(convs)},
    }
