"""Show the network's layers as a tree, with small pictures and facts, to find and pick one."""

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from hookviz.explaining.receptive_field import ReceptiveField
from hookviz.explorer.layer_tree import Previews, layer_tree
from hookviz.types import LayerInfo, Model
from hookviz.ui.components.files import component, packed


def navigator(
    model: Model,
    layers: Sequence[LayerInfo],
    fields: Mapping[str, ReceptiveField],
    previews: Previews | None,
    *,
    chosen: str,
    by_block: bool,
    on_pick: Callable[[str], None],
) -> None:
    """Show the layers by stage; `on_pick` gets the name of the one that a person picks.

    `by_block` they stand in the blocks that they are parts of, which can be picked too.
    """

    def picked() -> None:
        name = st.session_state["navigator"].get("picked")
        if name in {layer.name for layer in layers}:
            on_pick(name)

    component("navigator")(
        key="navigator",
        data=packed(layer_tree(model, layers, fields, previews, chosen=chosen, by_block=by_block)),
        on_picked_change=picked,
    )
