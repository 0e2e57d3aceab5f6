"""The second row: which layer is looked at, its facts, and the way to its neighbours."""

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hookviz.types import LayerInfo
from hookviz.ui.explorer.layer_choice import pick_layer
from hookviz.ui.state import choose, plain


def show_layer(
    layers: Sequence[LayerInfo], every: Sequence[LayerInfo]
) -> tuple[LayerInfo, DeltaGenerator]:
    """The layer that is picked, one of `layers`; and the empty line for its facts."""
    with st.container(horizontal=True, vertical_alignment="center", key="hv-layer"):
        before = st.container(width="content")
        layer = pick_layer(layers, every)
        with before:
            _step("Previous", "chevron_left", "P", layers, layer.index - 1)
        _step("Next", "chevron_right", "N", layers, layer.index + 1)
        facts = st.empty()
    return layer, facts


def _step(label: str, icon: str, key: str, layers: Sequence[LayerInfo], index: int) -> None:
    exists = 0 <= index < len(layers)
    st.button(
        label,
        icon=f":material/{icon}:",
        shortcut=key,
        disabled=not exists,
        help=f"{label} layer: {plain(layers[index].name)}" if exists else None,
        on_click=choose,
        kwargs={"layer": layers[index].name if exists else ""},
    )
