"""The grid, its figure and its activations as files to download."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from hookviz.capturing.export import npz
from hookviz.drawing.grid import Grid
from hookviz.types import Capture, Model


def show_downloads(grid: Grid, capture: Capture, model: Model) -> None:
    """The grid, the figure for print and the numbers themselves, made when asked for."""
    stem = f"{model.name}-{grid.title}"
    title = f"{model.title} · {grid.title}"
    files: list[tuple[str, Callable[[], bytes], str, str]] = [
        ("Grid as PNG", grid.png, f"{stem}.png", "image/png"),
        (
            "Figure as PNG",
            partial(grid.figure_bytes, "png", title=title),
            f"{stem}-figure.png",
            "image/png",
        ),
        (
            "Figure as PDF",
            partial(grid.figure_bytes, "pdf", title=title),
            f"{stem}-figure.pdf",
            "application/pdf",
        ),
        (
            "Activations as NPZ",
            partial(npz, capture),
            f"{stem}.npz",
            "application/octet-stream",
        ),
    ]
    with st.popover("Download", icon=":material/download:"):
        for label, make, file_name, mime in files:
            st.download_button(
                label, make, file_name, mime, key=label, on_click="ignore", width="stretch"
            )
