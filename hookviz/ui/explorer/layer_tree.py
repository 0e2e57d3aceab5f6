"""The tree of layers at the side, with a small picture of each."""

from collections.abc import Sequence

import streamlit as st

from hookviz.explaining.receptive_field import receptive_fields
from hookviz.types import LayerInfo, Model, ModelInput
from hookviz.ui.components.navigator import navigator
from hookviz.ui.explorer.layer_choice import choose_layer
from hookviz.ui.explorer.layer_thumbnails import previews
from hookviz.ui.serving import resources


def show_tree(
    model: Model,
    model_input: ModelInput,
    layers: Sequence[LayerInfo],
    layer: LayerInfo,
    listed: str | None,
) -> None:
    """The layers by stage, or by block, `layer` marked.

    `listed` says which list of layers they are, where it is not a lens that offers them. Where
    there are blocks among them, their parts stand in these. It takes a while for a network that is
    seen first.
    """
    fields = receptive_fields(model, tuple(model_input.tensor.shape[1:]))
    with st.container():  # for a wait in the queue, so that the tree stays in one place
        small = previews(model, model_input, resources.session_cache(), of_all=listed == "maps")
    names = {each.name for each in layers}
    has_blocks = any(name.rpartition(".")[0] in names for name in names)
    navigator(
        model,
        layers,
        fields,
        small,
        chosen=layer.name,
        by_block=has_blocks or listed == "maps",
        on_pick=lambda name: choose_layer(name, names, listed),
    )
