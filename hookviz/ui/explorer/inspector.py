"""Show one channel picked up: its map, its place on the photograph, its numbers."""

from functools import partial
from html import escape

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz.drawing.channel_page import channel_csv, channel_page, numbers
from hookviz.drawing.framing import framed, on_picture
from hookviz.drawing.grid import Grid
from hookviz.drawing.histogram import histogram
from hookviz.drawing.overlay import laid_over, shrunk
from hookviz.drawing.pair import Pair
from hookviz.explaining.receptive_field import ReceptiveField
from hookviz.explorer.glossary import WORDS
from hookviz.language.saying import mark, say
from hookviz.types import Activation, Capture, InputImage, Pixels
from hookviz.ui.components.map import show_map
from hookviz.ui.explorer.channel_pair import show_changes, show_channel_pair
from hookviz.ui.explorer.comparison import PinnedPair
from hookviz.ui.explorer.file_menu import File, file_menu
from hookviz.ui.explorer.trail import show_trail
from hookviz.ui.glossary import marked, term
from hookviz.ui.link import update_link
from hookviz.ui.menu import show_menus
from hookviz.ui.serving.resources import session_cache
from hookviz.ui.state import (
    Cell,
    Shown,
    choose_cell,
    choose_channel,
    chosen_cell,
    chosen_channel,
)
from hookviz.ui.theme import signed_colour
from hookviz.wording import number

ACROSS = "across-images"
"""The lens that shows one channel on many images."""

_OPACITY = 60  # percent
_OVERLAY = 480  # pixels of its longer side, twice what it takes on a laptop's screen
_AXES = ("row", "column")
_LABELS = mark("Row"), mark("Column")


def show_inspector(
    grid: Grid,
    activation: Activation,
    capture: Capture,
    shown: Shown,
    field: ReceptiveField | None,
    *,
    compared: tuple[PinnedPair, Pair] | None = None,
) -> int | None:
    """Show the chosen channel: its map, and where that lies on the photograph.

    Where it is `compared` with another of one shape, both maps are shown. Without a channel, the
    page says what a tile is and what to do with it, or which channels changed most, and None is
    returned.
    """
    channel = chosen_channel(grid.order)
    if channel is None:
        if compared is None:
            _show_hints(grid)
        else:
            show_changes(compared[0])
        return None
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="hv-channel"):
        st.subheader(say("Channel {channel}", channel=channel), anchor=False, width="stretch")
        _offer_files(grid, channel, activation, capture, shown)
        st.button(
            say("Across images"),
            icon=":material/grid_view:",
            on_click=update_link,
            kwargs={"lens": ACROSS, "layer": activation.layer, "channel": str(channel)},
            help=say("This channel on the samples and on your images"),
            key="hv-across",
        )
        st.button(
            say("Close"),
            icon=":material/close:",
            on_click=choose_channel,
            args=(None,),
            help=say("Back to all channels"),
            key="hv-close",
        )
    show_trail()
    values = activation.values[channel].numpy()
    rows, columns = values.shape
    cell = chosen_cell(rows, columns)
    pixels = grid.channel_pixels(channel)
    show_overlay = partial(_show_overlay, pixels, capture, shown, channel, field=field, cell=cell)
    if compared is not None:
        show_channel_pair(*compared, channel, show_overlay)
        return channel
    map_column, overlay_column = st.columns(2, gap="small", wrap=False)
    with map_column:
        show_map(grid, channel, values, cell, lambda picked: choose_cell(picked, (rows, columns)))
    with overlay_column:
        show_overlay()
    return channel


def show_numbers(grid: Grid, activation: Activation, channel: int) -> None:
    """Show the chosen channel in numbers, its cell by row and column, and its map's opacity."""
    values = activation.values[channel].numpy()
    rows, columns = values.shape
    cell = chosen_cell(rows, columns)
    with st.container(horizontal=True):
        for axis in _AXES:
            _coordinate(axis, cell, (rows, columns))
    st.slider(say("Opacity of the map"), 0, 100, _OPACITY, format="%d %%", key="opacity")
    _show_numbers(grid, channel, values)


def _coordinate(name: str, cell: Cell, size: Cell) -> None:
    """Show the cell's row or column as a number to change."""
    axis = _AXES.index(name)
    key = f"{name} {cell} {size}"  # another cell is another widget, which starts at its number

    def move() -> None:
        moved = list(cell)
        moved[axis] = st.session_state[key]
        choose_cell((moved[0], moved[1]), size)

    st.number_input(
        say(_LABELS[axis]),
        0,
        size[axis] - 1,
        cell[axis],
        step=1,
        key=key,
        on_change=move,
        width=140,
    )


def _show_hints(grid: Grid) -> None:
    """Say what a tile is and three things to do, in place of the channel that is not picked yet."""
    st.markdown(
        say(
            "**Each tile is a {term}**: the answer of one of this layer's {shape:,} "
            "detectors at every place of the image.",
            term=term("channel"),
            shape=grid.shape[0],
        ),
        unsafe_allow_html=True,
    )
    with st.container(key="hv-first", gap="small"):  # hidden for good once a tile was picked up
        st.markdown(
            say(
                "1. **Click a tile** to see it large, on the photograph, and why a cell has "
                "its value.\n2. **N** and **P**, on a phone a swipe over the tiles, lead "
                "through the layers, from edges to whole things.\n3. **Your own photograph** "
                "or another network: in the sidebar at the left."
            )
        )
        st.caption(say("Arrow keys move between tiles, Enter picks one up, / jumps to a number."))


def _offer_files(
    grid: Grid, channel: int, activation: Activation, capture: Capture, shown: Shown
) -> None:
    """Offer the channel as a page for print, and its numbers; made when asked for."""
    values = activation.values[channel].numpy()
    stem = f"{capture.model}-{grid.title}-channel-{channel}"
    draw = partial(
        channel_page,
        grid,
        channel,
        values,
        image=shown.image.pixels,
        crop=capture.model_input.crop,
        title=say(
            "{model} · {grid} · channel {channel}",
            model=capture.model,
            grid=grid.title,
            channel=channel,
        ),
    )
    files = (
        File(say("Channel as PNG"), partial(draw, format="png"), f"{stem}.png", "image/png"),
        File(say("Channel as PDF"), partial(draw, format="pdf"), f"{stem}.pdf", "application/pdf"),
        File(say("Numbers as CSV"), partial(channel_csv, values), f"{stem}.csv", "text/csv"),
    )
    show_menus(file_menu(say("Keep"), lambda: files, say("This channel as a file")))


def _show_overlay(
    coloured: Pixels,
    capture: Capture,
    shown: Shown,
    channel: int,
    *,
    field: ReceptiveField | None,
    cell: tuple[int, int],
) -> None:
    """Show the map over the photograph, and framed on it what the chosen cell sees."""
    crop = capture.model_input.crop
    if crop is None:
        st.caption(say("Where this lies on the image is not known."))
        return
    opacity = st.session_state.get("opacity", _OPACITY) / 100
    picture = laid_over(
        _small(shown.image), coloured, crop, shown.image.pixels.shape, opacity=opacity
    )
    said = say("on the image")
    if field is not None:
        box = field.box(*cell)
        picture = framed(picture, on_picture(box, crop, shown.image, picture.shape[:2]))
        size = (
            say("{height}×{width} px", height=field.size[0], width=field.size[1])
            if field.size
            else say("all of the image")
        )
        said = say("framed: what the cell sees, {size}", size=size)
    alt = say(
        "The map of channel {channel} laid over the image: {alt}", channel=channel, alt=shown.alt
    )
    st.image(picture, width="stretch", output_format="JPEG", alt=alt)
    st.caption(marked(said), unsafe_allow_html=True)


def _small(image: InputImage) -> Pixels:
    """Return the image as large as it is shown, from the cache: each channel is laid over it."""
    cache, key = session_cache(), ("photograph", image.digest)
    small: Pixels | None = cache.get(key)
    if small is None:
        small = shrunk(image.pixels, _OVERLAY)
        cache.put(key, small, small.nbytes)
    return small


def _show_numbers(grid: Grid, channel: int, values: NDArray[np.float32]) -> None:
    stats = grid.stats
    finite = values[np.isfinite(values)].astype(np.float64)
    if not finite.size:
        st.caption(say("No cell of this map is a finite number."))
        return
    if values.size > 1 and stats.minimum[channel] == stats.maximum[channel]:
        st.badge(
            say("dead: every cell has the same value"),
            icon=":material/block:",
            color="gray",
            help=WORDS["dead channel"],
        )
    st.html(_histogram(finite))
    rows = numbers(grid, channel, values)
    cells = "".join(f"<span>{escape(name)}</span><b>{value}</b>" for name, value in rows.items())
    st.html(f'<div class="hv-numbers">{cells}</div>')


def _histogram(values: NDArray[np.float64]) -> str:
    """Return how many cells have which value, as bars from the lowest to the highest, as HTML."""
    bins = histogram(values)
    counts, low, high = bins.counts, number(bins.edges[0]), number(bins.edges[-1])
    below, above = signed_colour(-1), signed_colour(1)
    bars = "".join(
        f'<span style="height:{max(1.0, 100 * count / counts.max()) if count else 0:.1f}%;'
        f'background:{below if middle < 0 else above}"></span>'
        for count, middle in zip(counts, bins.middles, strict=True)
    )
    says = escape(
        say(
            "Histogram of {size:,} cells from {low} to {high}", size=values.size, low=low, high=high
        )
    )
    return (
        f'<div class="hv-histogram" role="img" aria-label="{says}">{bars}</div>'
        f'<div class="hv-ends"><span>{low}</span><span>{high}</span></div>'
    )
