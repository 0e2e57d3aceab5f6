"""Show A beside B in numbers: one channel of both, or which channels changed most."""

from collections.abc import Callable
from functools import partial
from html import escape

import numpy as np
import streamlit as st

from hookviz.drawing.grid import Grid
from hookviz.drawing.pair import Pair
from hookviz.language.saying import say
from hookviz.ui.components.map import show_map
from hookviz.ui.explorer.comparison import PinnedPair
from hookviz.ui.state import Cell, choose_cell, choose_channel, chosen_cell, chosen_channel, plain
from hookviz.wording import number

_MOST = 8  # channels in the list of those that changed most


def show_channel_pair(
    comparison: PinnedPair, pair: Pair, channel: int, show_overlay: Callable[[], None]
) -> None:
    """Show the channel in A beside that in B, the chosen cell in both, and how far they agree.

    `show_overlay` draws where B lies on the photograph, for the place beside the numbers.
    """
    rows, columns = comparison.b.shape[1:]
    cell = chosen_cell(rows, columns)
    pick = partial(choose_cell, size=(rows, columns))
    sides = ("A", pair.a, comparison.a), ("B", pair.b, comparison.b)
    for column, (name, grid, maps) in zip(
        st.columns(2, gap="small", wrap=False), sides, strict=True
    ):
        with column:
            st.markdown(f"**{name}**")
            show_map(grid, channel, maps[channel], cell, pick, key=f"map-{name.lower()}")
    overlay_place, numbers_place = st.columns(2, gap="small", wrap=False)
    with overlay_place:
        show_overlay()
    with numbers_place:
        _show_numbers(comparison, channel, cell)


def show_pinned_channel(comparison: PinnedPair, grid: Grid) -> None:
    """Show the channel of A that the link names, by itself: B has no map to hold against it."""
    channel = chosen_channel(grid.order)
    if channel is None:
        with st.container(key="hv-hints"):
            st.markdown(say("**Click a tile** for the channel's map in A."))
        return
    values = comparison.a[channel]
    rows, columns = values.shape
    with st.container(key="hv-picked"):
        with st.container(horizontal=True, vertical_alignment="center", key="hv-channel"):
            st.subheader(
                say("Channel {channel} of A", channel=channel), anchor=False, width="stretch"
            )
            st.button(
                say("Close"),
                icon=":material/close:",
                on_click=choose_channel,
                args=(None,),
                help=say("Back to all channels"),
                key="hv-close",
            )
        cell = chosen_cell(rows, columns)
        pick = partial(choose_cell, size=(rows, columns))
        with st.columns(2, gap="small", wrap=False)[0]:
            show_map(grid, channel, values, cell, pick, key="map-a")
        st.caption(f"{plain(comparison.view.image)} · {plain(comparison.view.title)}")


def _show_numbers(comparison: PinnedPair, channel: int, cell: Cell) -> None:
    common = comparison.channels
    numbers = {
        "A here": comparison.a[channel][cell],
        "B here": comparison.b[channel][cell],
        "mean |B − A|": common.mean_absolute_difference[channel],
        "correlation": common.correlation[channel],
        "cosine": common.cosine[channel],
    }
    cells = "".join(
        f"<span>{name}</span><b>{number(float(value))}</b>" for name, value in numbers.items()
    )
    st.html(f'<div class="hv-numbers">{cells}</div>')


def show_changes(comparison: PinnedPair) -> None:
    """Show what A and B have in common as a whole, and the channels that changed most."""
    common = comparison.channels
    known = common.correlation[np.isfinite(common.correlation)]
    mean = (
        say("the channels' correlation is {mean} on average", mean=number(known.mean()))
        if known.size
        else ""
    )
    st.markdown(
        say("**Click a tile** for its map in A and in B. Hold **F** to flip between the two. ")
        + (say("Cell against cell {correlation}.", correlation=mean) if mean else "")
    )
    rows = "".join(
        f"<tr><td>{channel}</td><td>{number(common.mean_absolute_difference[channel])}</td>"
        f"<td>{number(common.correlation[channel])}</td><td>{number(common.cosine[channel])}</td>"
        "</tr>"
        for channel in common.most_changed[:_MOST].tolist()
    )
    heads = ("channel", say("mean |B − A|"), "correlation", "cosine")
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    st.caption(say("The channels that changed most; sort: change brings them to the front."))
    st.html(f'<table class="hv-changes"><tr>{head}</tr>{rows}</table>')
