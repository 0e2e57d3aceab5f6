"""The name of the layer that is shown, its facts, and the way to its neighbours."""

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hookviz.types import LayerInfo
from hookviz.ui.state import choose, plain


def show_layer(layer: LayerInfo, layers: Sequence[LayerInfo]) -> DeltaGenerator:
    """The layer's name and the way to its neighbours; returns the empty line for its facts."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header(plain(layer.name), anchor=False, width="stretch")
        _step("Previous", "chevron_left", "P", layers, layer.index - 1)
        _step("Next", "chevron_right", "N", layers, layer.index + 1)
    facts = st.empty()
    stages = tuple(dict.fromkeys(each.stage for each in layers))
    st.session_state["stage"] = layer.stage
    st.segmented_control(
        "Part of the network",
        stages,
        format_func=plain,  # it takes Markdown
        key="stage",
        required=True,
        on_change=lambda: choose(
            layer=next(each.name for each in layers if each.stage == st.session_state["stage"])
        ),
        label_visibility="collapsed",
    )
    return facts


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
