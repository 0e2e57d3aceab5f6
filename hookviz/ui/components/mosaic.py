"""The grid of channels as one picture with its colour bar."""

from functools import cache
from typing import Any

import streamlit as st

from hookviz.render import Grid
from hookviz.ui.components import data_url, source


@cache
def _component() -> Any:
    return st.components.v2.component(
        "hookviz_mosaic", css=source("mosaic.css"), js=source("mosaic.js")
    )


def mosaic(grid: Grid, alt: str) -> None:
    """Show the grid as wide as the page, with what its colours mean underneath."""
    geometry = grid.geometry
    _component()(
        key="mosaic",
        data={
            "picture": data_url(grid.png()),
            "width": geometry.width,
            "height": geometry.height,
            "alt": alt,
            "bar": data_url(grid.bar()),
            "ticks": [[fraction, label] for fraction, label in grid.ticks],
        },
    )
