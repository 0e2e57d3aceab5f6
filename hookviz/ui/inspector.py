"""One channel picked up: its map, its place on the image, its numbers."""

import io
from html import escape

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from PIL import Image

from hookviz.overlay import overlay
from hookviz.render import Grid
from hookviz.scales import number
from hookviz.types import Activation, Capture, Pixels
from hookviz.ui.state import Shown, choose_channel

_MAP_SIDE = 512  # pixels that a map is magnified to, in whole steps
_BINS = 48


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
        st.button("Close", icon=":material/close:", on_click=choose_channel, args=(None,))
    large, over, numbers = st.columns(3, gap="medium")
    values = activation.values[channel].numpy()
    coloured = _coloured(grid, channel)
    with large:
        st.image(_magnified(coloured), width="stretch", alt=f"The map of channel {channel}.")
        ticks = " … ".join(label for _, label in grid.ticks_of(channel))
        st.caption(f"{values.shape[0]}×{values.shape[1]} cells · colours span {ticks}")
    with over:
        _show_overlay(coloured, capture, shown, channel)
    with numbers:
        _show_numbers(grid, channel, values)
    return channel


def chosen_channel(grid: Grid) -> int | None:
    """The channel in the link, where it is among those shown."""
    asked = st.query_params.get("channel", "")
    channel = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 7 else -1
    return channel if channel in grid.order else None


def _coloured(grid: Grid, channel: int) -> Pixels:
    with Image.open(io.BytesIO(grid.channel_png(channel, 1))) as picture:
        return np.asarray(picture.convert("RGB"))


def _magnified(coloured: Pixels) -> Pixels:
    """Every cell as a square of whole pixels, so that none is blurred."""
    step = max(1, _MAP_SIDE // max(coloured.shape[:2]))
    return coloured.repeat(step, axis=0).repeat(step, axis=1)


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
    rank = 1 + int((stats.maximum > stats.maximum[channel]).sum())
    rows = {
        "minimum": number(finite.min()),
        "mean": number(finite.mean()),
        "maximum": number(finite.max()),
        "standard deviation": number(finite.std()),
        "zeros": f"{stats.zeros[channel]:.0%}".replace("%", " %"),
        "rank by maximum": f"{rank} of {len(stats)}",
    }
    cells = "".join(f"<span>{escape(name)}</span><b>{value}</b>" for name, value in rows.items())
    st.html(f'<div class="hv-numbers">{cells}</div>')


def _histogram(values: NDArray[np.float64]) -> str:
    """How many cells have which value, as bars between the lowest and the highest."""
    counts, edges = np.histogram(values, bins=_BINS)
    low, high = number(float(edges[0])), number(float(edges[-1]))
    bars = "".join(
        f'<span style="height:{max(1.0, 100 * count / counts.max()) if count else 0:.1f}%"></span>'
        for count in counts
    )
    says = escape(f"Histogram of {values.size:,} cells from {low} to {high}")
    return (
        f'<div class="hv-histogram" role="img" aria-label="{says}">{bars}</div>'
        f'<div class="hv-ends"><span>{low}</span><span>{high}</span></div>'
    )
