"""The grid of a layer's channels with its legend: the middle of the page."""

from functools import partial

import streamlit as st

from hookviz.drawing.grid import Grid
from hookviz.ui.components.mosaic import mosaic
from hookviz.ui.explorer.inspector import chosen_channel
from hookviz.ui.glossary import marked
from hookviz.ui.state import Cell, Shown, choose_cell, choose_channel


def show_grid(grid: Grid, shown: Shown) -> None:
    """Every channel, and one sentence that says what the colours mean."""
    alt = f"{grid.shown} of layer {grid.title} for: {shown.alt}. {grid.legend}"
    mosaic(grid, alt, chosen_channel(grid), partial(_pick, grid.shape[1:]))
    words = f"{grid.legend} {grid.shown[0].upper()}{grid.shown[1:]}."
    st.caption(marked(words), unsafe_allow_html=True)


def _pick(size: Cell, channel: int, cell: Cell | None) -> None:
    if cell is None:
        choose_channel(channel)
    else:
        choose_cell(cell, size, channel)
