"""Which lens is looked through, and at which layer it begins."""

from collections.abc import Sequence

import streamlit as st

from hookviz.lenses.contract import parameters as kinds
from hookviz.lenses.contract.lens import Lens
from hookviz.lenses.contract.running import list_lenses
from hookviz.types import LayerInfo, Model
from hookviz.ui.state import choose

CHANNELS = "Channels"
"""The choice of no lens: the grid of channels and the explorer."""


def pick_lens() -> Lens | None:
    """Which lens to look through; None for the channels themselves."""
    titles = {f"{lens.group}: {lens.title}": lens for lens in list_lenses()}
    chosen = st.selectbox(
        "Look at",
        [CHANNELS, *titles],
        key="lens",
        bind="query-params",
        help="The channels themselves, or what else the hooks can show of this run.",
    )
    return titles.get(chosen)


def layer_kind(lens: Lens | None) -> str:
    """Which kind of layers are offered at the side, as `list_layers` has them."""
    return next((parameter.kind for parameter in layers_at_side(lens)), "conv") if lens else "conv"


def start_at(lens: Lens, model: Model, every: Sequence[LayerInfo]) -> None:
    """Begin a lens at the layer that it is made for, unless a layer was chosen already.

    To be called before the widget that picks the layer.
    """
    before, now = st.session_state.get("looked"), (lens.slug, model.name)
    st.session_state["looked"] = now
    if before != now and "layer" not in st.query_params:
        for parameter in layers_at_side(lens):
            choose(layer=parameter.start(every))


def layers_at_side(lens: Lens) -> list[kinds.LayerChoice]:
    """The lens's layer parameter, where it is the one chosen at the side; else nothing."""
    return [
        parameter
        for parameter in lens.parameters
        if isinstance(parameter, kinds.LayerChoice)
        and parameter.name == "layer"
        and parameter.default != "none"
    ]
