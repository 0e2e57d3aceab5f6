"""Show why a cell has its value: the sum's largest products, each a button to its channel."""

from collections.abc import Callable

import streamlit as st

from hookviz.explaining.cell_sum import CellSum
from hookviz.explorer.cell_sum import cell_sum
from hookviz.ui.components.files import component, packed


def why(
    cell: CellSum, upstream: str | None, colormap: str, on_upstream: Callable[[int], None]
) -> None:
    """Show the sum; `on_upstream` gets the input channel that a person follows upstream.

    Args:
        cell: the sum.
        upstream: the layer whose channels the inputs are; None where there is no one layer.
        colormap: a diverging one, for patches, kernels and bars.
        on_upstream: called with the number of the input channel.
    """

    def followed() -> None:
        match st.session_state["why"].get("upstream"):
            case int(channel):
                on_upstream(channel)

    data = packed(cell_sum(cell, upstream, colormap))
    component("why")(key="why", data=data, on_upstream_change=followed)
