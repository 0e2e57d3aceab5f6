"""Which layer is looked at."""

from collections.abc import Sequence

import streamlit as st

from hookviz.types import LayerInfo
from hookviz.ui.state import choose, warn_about_link


def pick_layer(layers: Sequence[LayerInfo], every: Sequence[LayerInfo]) -> LayerInfo:
    """One of `layers`, which are in order of execution.

    A layer that is only among `every` layer of the model, because another lens offered those,
    leads to the one of `layers` before it.
    """
    by_name = {layer.name: layer for layer in layers}
    names = [layer.name for layer in every]
    asked = st.session_state.get("layer", st.query_params.get("layer"))
    if asked in names and asked not in by_name:
        before = [name for name in names[: names.index(asked)] if name in by_name]
        choose(layer=before[-1] if before else layers[0].name)
    network = hash(tuple(names))
    if asked not in names and st.session_state.get("_network", network) == network:
        warn_about_link("layer", list(by_name))  # and not where another model was chosen here
    st.session_state["_network"] = network
    name = st.selectbox(
        "Layer",
        list(by_name),
        key="layer",
        bind="query-params",
        label_visibility="collapsed",
        width=300,
    )
    return by_name[name]
