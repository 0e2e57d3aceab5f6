"""Which lens is looked through, and at which layer it begins."""

from collections.abc import Sequence

import streamlit as st

from hookviz.lenses.contract import parameters as kinds
from hookviz.lenses.contract.lens import Lens
from hookviz.lenses.contract.running import list_lenses
from hookviz.types import LayerInfo, Model
from hookviz.ui.linked_select import linked_select
from hookviz.ui.state import choose, warn_about_link

CHANNELS = ""
"""The choice of no lens: the grid of channels and the explorer."""


def pick_lens() -> Lens | None:
    """Which lens to look through, by the question it answers; None for the channels themselves."""
    lenses = {lens.slug: lens for lens in list_lenses()}
    asked = st.query_params.get("lens", CHANNELS)
    titles = {lens.title: slug for slug, lens in lenses.items()}
    if asked and asked not in lenses:
        by_title = titles.get(asked.rpartition(": ")[2])  # as links were written before
        if by_title is None:
            warn_about_link("lens", list(lenses))
        else:
            st.query_params["lens"] = by_title
    chosen = linked_select(
        "Look at",
        {CHANNELS: "Channels"}
        | {slug: f"{lens.question} · {lens.title}" for slug, lens in lenses.items()},
        "lens",
        hint="The channels themselves, or what else the hooks can show of this run.",
    )
    return lenses.get(chosen or CHANNELS)


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
