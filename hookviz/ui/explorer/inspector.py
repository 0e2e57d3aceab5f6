"""One channel picked up: its map, its place on the image, its numbers."""

from functools import partial
from html import escape

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz.drawing.channel_page import channel_csv, channel_page, numbers
from hookviz.drawing.grid import Grid
from hookviz.drawing.histogram import histogram
from hookviz.drawing.overlay import overlay
from hookviz.types import Activation, Capture, Pixels
from hookviz.ui.components.map import show_map
from hookviz.ui.state import Shown, choose_cell, choose_channel, chosen_cell
from hookviz.wording import number


def show_inspector(
    grid: Grid, activation: Activation, capture: Capture, shown: Shown
) -> int | None:
    """The chosen channel, large, with what it saw and how it compares; None without one."""
    channel = chosen_channel(grid)
    if channel is None:
        st.caption("Click a channel, or press Enter on it, to pick it up. / jumps to one.")
        return None
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(f"Channel {channel}", anchor=False, width="stretch")
        _offer_files(grid, channel, activation, capture, shown)
        st.button("Close", icon=":material/close:", on_click=choose_channel, args=(None,))
    large, over, numbers = st.columns(3, gap="medium")
    values = activation.values[channel].numpy()
    coloured = grid.channel_pixels(channel)
    with large:
        rows, columns = values.shape
        show_map(grid, channel, values, chosen_cell(rows, columns), choose_cell)
        st.caption(f"{rows}×{columns} cells · click one to see where its value comes from")
    with over:
        _show_overlay(coloured, capture, shown, channel)
    with numbers:
        _show_numbers(grid, channel, values)
    return channel


def _offer_files(
    grid: Grid, channel: int, activation: Activation, capture: Capture, shown: Shown
) -> None:
    """The channel as a page for print, and its numbers; made when asked for."""
    values = activation.values[channel].numpy()
    stem = f"{capture.model}-{grid.title}-channel-{channel}"
    draw = partial(
        channel_page,
        grid,
        channel,
        values,
        image=shown.image.pixels,
        crop=capture.model_input.crop,
        title=f"{capture.model} · {grid.title} · channel {channel}",
    )
    with st.popover("Keep", icon=":material/download:"):
        for label, make, ending, mime in (
            ("Channel as PNG", partial(draw, format="png"), "png", "image/png"),
            ("Channel as PDF", partial(draw, format="pdf"), "pdf", "application/pdf"),
            ("Numbers as CSV", partial(channel_csv, values), "csv", "text/csv"),
        ):
            st.download_button(
                label, make, f"{stem}.{ending}", mime, on_click="ignore", width="stretch"
            )


def chosen_channel(grid: Grid) -> int | None:
    """The channel in the link, where it is among those shown."""
    asked = st.query_params.get("channel", "")
    channel = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 7 else -1
    return channel if channel in grid.order else None


def _show_overlay(coloured: Pixels, capture: Capture, shown: Shown, channel: int) -> None:
    crop = capture.model_input.crop
    if crop is None:
        st.caption("Where this lies on the image is not known.")
        return
    place = st.empty()
    opacity = st.slider("Opacity of the map", 0, 100, 60, format="%d %%", key="opacity") / 100
    picture = overlay(shown.image.pixels, coloured, crop, opacity=opacity)
    alt = f"The map of channel {channel} laid over the image: {shown.alt}"
    place.image(picture, width="stretch", alt=alt)


def _show_numbers(grid: Grid, channel: int, values: NDArray[np.float32]) -> None:
    stats = grid.stats
    finite = values[np.isfinite(values)].astype(np.float64)
    if not finite.size:
        st.caption("No cell of this map is a finite number.")
        return
    if stats.minimum[channel] == stats.maximum[channel]:
        st.badge("dead: every cell has the same value", icon=":material/block:", color="gray")
    st.html(_histogram(finite))
    rows = numbers(grid, channel, values)
    cells = "".join(f"<span>{escape(name)}</span><b>{value}</b>" for name, value in rows.items())
    st.html(f'<div class="hv-numbers">{cells}</div>')


def _histogram(values: NDArray[np.float64]) -> str:
    """How many cells have which value, as bars between the lowest and the highest."""
    bins = histogram(values)
    counts, low, high = bins.counts, number(bins.edges[0]), number(bins.edges[-1])
    bars = "".join(
        f'<span style="height:{max(1.0, 100 * count / counts.max()) if count else 0:.1f}%"></span>'
        for count in counts
    )
    says = escape(f"Histogram of {values.size:,} cells from {low} to {high}")
    return (
        f'<div class="hv-histogram" role="img" aria-label="{says}">{bars}</div>'
        f'<div class="hv-ends"><span>{low}</span><span>{high}</span></div>'
    )
