"""Draw a map before ReLU, after it and after pooling, and the numbers behind a picked cell."""

from collections.abc import Callable
from functools import partial
from html import escape

import streamlit as st

from hookviz.language.saying import say
from hookviz.lessons.layers import layer_of
from hookviz.lessons.maps import Map, channel_of, maps_of
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.relu_pool import (
    CELL,
    LARGEST,
    POOLS,
    Stages,
    before_relu,
    picked_or_first,
    stages,
)
from hookviz.ui.components.map import show_map
from hookviz.ui.lessons.maps import grid_of
from hookviz.ui.lessons.number_table import number_table
from hookviz.ui.lessons.picks import choose, pick, picked, remember_link, remember_shown, slide
from hookviz.ui.state import Cell
from hookviz.wording import number, times


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the maps side by side in the same colours, and below them the picked cell in numbers."""
    layer = layer_of(scene, options["layer"])
    maps = maps_of(scene, before_relu(scene, layer.name))
    channel = channel_of(maps, options["channel"])
    pools = options["shown"] == "pool"
    kind, window = (
        _controls(options, key, maps.shape[1:]) if pools else ("max", int(options["window"]))
    )
    of_map = stages(maps[channel], kind, window)
    first = of_map.first_cell
    cell = picked_or_first(of_map, ",".join(map(str, picked(key, "cell", first))))
    start = {**options, CELL: ",".join(map(str, first))}
    moved = {"pool": kind, "window": str(window)} if pools else {}
    remember_shown(key, {**moved, CELL: ",".join(map(str, cell))}, start)
    remember_link(
        key,
        {
            "layer": layer.name,
            "channel": str(channel),
            "cell": ",".join(map(str, (*cell, *of_map.before.shape))),
        },
    )
    _show_maps(of_map, cell, key, options["shown"])
    if options["shown"] == "relu":
        _show_cell(of_map, cell)
    elif pools:
        _show_window(of_map, cell, kind)


def _controls(options: Options, key: str, size: tuple[int, ...]) -> tuple[str, int]:
    """Show the controls of the pooling; return its kind and the side of its windows."""
    with st.container(horizontal=True, vertical_alignment="bottom", key=f"{key}-controls"):
        kind = choose(
            st.segmented_control,
            say("Pooling"),
            list(POOLS),
            key,
            "pool",
            first=options["pool"],
            format_func=lambda name: say(POOLS[name]),
            required=True,
        )
        most = max(2, min(LARGEST, *size))
        label, first = say("Cells along the window's side"), int(options["window"])
        window = slide(label, 1, most, key, "window", first=first)
    return kind, window


def _pooled(of_map: Stages, cell: Cell) -> Cell:
    """Return the pooled cell that a cell goes into; of one that fills no window, the nearest."""
    row, column = (
        min(at // of_map.window, count - 1)
        for at, count in zip(cell, of_map.pooled.shape, strict=True)
    )
    return row, column


def _show_maps(of_map: Stages, cell: Cell, key: str, shown: str) -> None:
    """Draw as many of the three maps as are wanted, each as large as the others."""
    before = grid_of(of_map.before[None])
    take = partial(pick, key, "cell")

    def take_pooled(at: Cell) -> None:
        """Pick the cell that counts most in the window."""
        _, rectified = of_map.cells(*at)
        down, across = divmod(int(rectified.argmax()), of_map.window)
        take((at[0] * of_map.window + down, at[1] * of_map.window + across))

    def show_one(
        title: str, values: Map, at: Cell, on_pick: Callable[[Cell], None], name: str
    ) -> None:
        grid = grid_of(values[None], limits=before.limits)
        st.caption(f"**{title}** · {times(values.shape)}")
        show_map(grid, 0, values, at, on_pick, key=f"{key}-{name}")

    columns = st.columns(3 if shown == "pool" else 2, gap="small", wrap=False)
    with columns[0]:
        show_one(say("Before"), of_map.before, cell, take, "before")
    if shown != "before":
        with columns[1]:
            show_one(say("After ReLU"), of_map.rectified, cell, take, "rectified")
    if shown == "pool":
        with columns[2]:
            show_one(say("Pooled"), of_map.pooled, _pooled(of_map, cell), take_pooled, "pooled")


def _show_cell(of_map: Stages, cell: Cell) -> None:
    """Say what ReLU makes of the picked cell."""
    words = say(
        "Row {row}, column {column}: ReLU makes {after} of {before}.",
        row=cell[0],
        column=cell[1],
        before=number(float(of_map.before[cell])),
        after=number(float(of_map.rectified[cell])),
    )
    st.html(f'<p class="hv-came-from">{escape(words)}</p>')


def _show_window(of_map: Stages, cell: Cell, kind: str) -> None:
    """Show all cells of the window that the picked number came from, before ReLU and after it."""
    row, column = _pooled(of_map, cell)
    before_window, window = of_map.cells(row, column)
    value = number(float(of_map.pooled[row, column]))
    result = (
        say("The largest of {count} is {value}.", count=window.size, value=value)
        if kind == "max"
        else say("The average of {count} is {value}.", count=window.size, value=value)
    )
    taken = int(window.argmax()) if kind == "max" else -1
    st.html(
        '<div class="hv-came-from">'
        + number_table(before_window, say("Before"), gone=before_window < 0)
        + '<span aria-hidden="true">→</span>'
        + number_table(window, say("After ReLU"), taken=taken)
        + f'<span aria-hidden="true">→</span><b>{escape(result)}</b></div>'
    )
