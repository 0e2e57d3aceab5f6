"""The second row: which layer is looked at, what followed it, and the way to its neighbours."""

from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hookviz.capturing.survey import Survey, steps_after
from hookviz.types import Address, LayerInfo
from hookviz.ui.explorer.layer_choice import pick_layer
from hookviz.ui.state import choose, plain


def show_layer(
    layers: Sequence[LayerInfo], surveyed: Survey, *, with_steps: bool
) -> tuple[LayerInfo, Address, DeltaGenerator]:
    """The layer that is picked, whose output is shown, and the empty line for its facts.

    What is shown is the layer's own output, or, `with_steps`, that of a step that followed it.
    """
    with st.container(horizontal=True, vertical_alignment="center", key="hv-layer"):
        before = st.container(width="content")
        layer = pick_layer(layers, surveyed.layers)
        with before:
            _neighbour("Previous", "chevron_left", "P", layers, layer.index - 1)
        _neighbour("Next", "chevron_right", "N", layers, layer.index + 1)
        step = _pick_step(layer, surveyed) if with_steps else Address(layer.name)
        facts = st.empty()
    return layer, step, facts


def _pick_step(layer: LayerInfo, surveyed: Survey) -> Address:
    """The layer's own output, or what batch norm, activation or pooling made of it."""
    kinds = {info.name: info.kind for info in surveyed.layers}
    steps = {layer.kind: Address(layer.name)}
    for address in steps_after(surveyed, layer.name):
        steps[_unlike(kinds[address.layer], steps)] = address
    if len(steps) == 1:
        return Address(layer.name)
    chosen = st.segmented_control(
        "What is shown",
        list(steps),
        default=layer.kind,
        required=True,
        key="after",
        bind="query-params",
        label_visibility="collapsed",
        width="content",
        wrap=False,
        help="The layer's own output, or what the steps after it made of that.",
    )
    return steps.get(chosen or "", Address(layer.name))


def _unlike(kind: str, steps: Mapping[str, Address]) -> str:
    """The kind, numbered where there is one of it already."""
    name, number = kind, 2
    while name in steps:
        name, number = f"{kind} {number}", number + 1
    return name


def _neighbour(label: str, icon: str, key: str, layers: Sequence[LayerInfo], index: int) -> None:
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
