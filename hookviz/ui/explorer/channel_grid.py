"""The grid of a layer's channels with its legend: the middle of the page."""

import streamlit as st

from hookviz.drawing.grid import Grid
from hookviz.ui.components.mosaic import mosaic
from hookviz.ui.explorer.inspector import chosen_channel
from hookviz.ui.state import Shown, choose_channel, plain


def show_grid(grid: Grid, shown: Shown) -> None:
    """Every channel, and one sentence that says what the colours mean."""
    alt = f"{grid.shown} of layer {grid.title} for: {shown.alt}. {grid.legend}"
    mosaic(grid, alt, chosen_channel(grid), choose_channel)
    st.caption(plain(f"{grid.legend} {grid.shown[0].upper()}{grid.shown[1:]}."))
