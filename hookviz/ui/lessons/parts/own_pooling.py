"""Draw the poolings of the network itself: a map before one and behind it, and a cell's numbers."""

from functools import partial
from html import escape

import numpy as np
import streamlit as st

from hookviz.explaining.layers.poolings import Pooling
from hookviz.language.saying import say
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.own_pooling import PICKED, own_poolings, told
from hookviz.ui.components.map import show_map
from hookviz.ui.lessons.maps import grid_of
from hookviz.ui.lessons.number_table import number_table
from hookviz.ui.lessons.picks import choose, pick, picked, remember_link, remember_shown
from hookviz.ui.state import Cell, plain
from hookviz.wording import number, times

_MOST_CELLS = 25  # of a window that is shown number by number


def show(scene: LessonScene, _options: Options, key: str) -> None:
    """Draw the choice of a pooling and its two maps; where there is none, say so."""
    found = own_poolings(scene)
    if not found:
        st.info(plain(told(scene, found, 0)), icon=":material/info:")
        return
    names = [each.layer or say("number {place}", place=at + 1) for at, each in enumerate(found)]
    at = choose(
        st.segmented_control,
        say("Pooling"),
        range(len(found)),
        key,
        "pooling",
        first=0,
        format_func=names.__getitem__,
        required=True,
        label_visibility="collapsed",
    )
    pooling = found[at]
    remember_shown(key, {PICKED: str(at)}, {PICKED: "0"})
    if pooling.layer:
        remember_link(key, {"layer": pooling.layer, "channel": str(pooling.channel)})
    rows, columns = pooling.after.shape
    row, column = picked(key, "cell", divmod(int(pooling.after.argmax()), columns))
    cell = min(row, rows - 1), min(column, columns - 1)
    _show_maps(pooling, cell, key)
    _show_window(pooling, cell)


def _show_maps(pooling: Pooling, cell: Cell, key: str) -> None:
    """Draw the map before and behind in the same colours; a click in either picks a cell."""
    before = grid_of(pooling.before[None])
    after = grid_of(pooling.after[None], limits=before.limits)
    take = partial(pick, key, "cell")
    window = pooling.cells(*cell)
    inside = pooling.before[window]
    down, across = divmod(int(inside.argmax()), inside.shape[1])
    at = window[0].start + down, window[1].start + across

    def take_before(picked_cell: Cell) -> None:
        """Pick the cell behind whose window is nearest to a cell before."""
        shapes = zip(picked_cell, pooling.after.shape, pooling.before.shape, strict=True)
        take(tuple(min(place * count // size, count - 1) for place, count, size in shapes))

    first, second = say("Before"), say("Pooled")
    columns = st.columns(2, gap="small", wrap=False)
    with columns[0]:
        st.caption(f"**{first}** · {times(pooling.before.shape)}")
        show_map(before, 0, pooling.before, at, take_before, key=f"{key}-before")
    with columns[1]:
        st.caption(f"**{second}** · {times(pooling.after.shape)}")
        show_map(after, 0, pooling.after, cell, take, key=f"{key}-pooled")


def _show_window(pooling: Pooling, cell: Cell) -> None:
    """Show the numbers that the picked one was made of, where they are few."""
    inside, value = pooling.before[pooling.cells(*cell)], number(float(pooling.after[cell]))
    result = (
        say("The largest of {count} is {value}.", count=inside.size, value=value)
        if pooling.kind == "max"
        else say("The average of {count} is {value}.", count=inside.size, value=value)
    )
    table = ""
    if inside.size <= _MOST_CELLS:
        taken = int(np.argmax(inside)) if pooling.kind == "max" else -1
        table = number_table(inside, say("Before"), taken=taken)
        table += '<span aria-hidden="true">→</span>'
    st.html(f'<div class="hv-came-from">{table}<b>{escape(result)}</b></div>')
