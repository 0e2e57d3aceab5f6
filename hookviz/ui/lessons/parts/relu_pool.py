"""Follow one map through ReLU and pooling, with the numbers behind a picked cell."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from html import escape

import numpy as np
import streamlit as st
import torch
import torch.nn.functional as F

from hookviz.capturing.layer_trace import steps_after
from hookviz.errors import HookVizError
from hookviz.language.saying import mark, say
from hookviz.lessons.layers import STRONGEST, Map, channel_of, check_channel, layer_of, maps_of
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice, whole_number
from hookviz.types import ActivationKey
from hookviz.ui.components.pictures import show_map
from hookviz.ui.lessons.figures import grid_of, number_table
from hookviz.ui.lessons.picks import (
    choose_button,
    pick,
    picked,
    remember_link,
    remember_options,
    slide,
    within,
)
from hookviz.ui.state import Cell
from hookviz.wording import number, times

_POOLS = {"max": mark("Largest"), "average": mark("Average")}
"""Titles of the kinds of pooling, by the words of a lesson's file."""

_STAGES = ("before", "relu", "pool")
"""Words of a lesson's file for the last stage."""

CELL = "cell"
"""Option that the page adds: the picked cell, ``"row,column"``."""

_LARGEST = 6
"""Cells along a window's side, at most."""


@dataclass(frozen=True, eq=False, slots=True)
class Stages:
    """One channel's map before ReLU, after it, and after pooling.

    Attributes:
        before: output of the convolution and its norm, if any, ``(H, W)``.
        rectified: after ReLU, ``(H, W)``.
        pooled: after pooling, ``(H // window, W // window)``.
        window: cells along a window's side.
    """

    before: Map = field(repr=False)
    rectified: Map = field(repr=False)
    pooled: Map = field(repr=False)
    window: int

    @property
    def first_cell(self) -> tuple[int, int]:
        """The cell at first, which ReLU changes if it changes any.

        It is the lowest of the highest window with both signs, or the lowest of all.
        """
        for at in np.argsort(-self.pooled, axis=None, kind="stable").tolist():
            row, column = divmod(at, self.pooled.shape[1])
            window, _ = self.cells(row, column)
            if window.min() < 0 < window.max():
                down, across = divmod(int(window.argmin()), self.window)
                return row * self.window + down, column * self.window + across
        lowest = self.before.argmin() if (self.before < 0).any() else self.before.argmax()
        row, column = divmod(int(lowest), self.before.shape[1])
        return row, column

    def cells(self, row: int, column: int) -> tuple[Map, Map]:
        """Return the window of a pooled cell, before and after ReLU, ``(window, window)`` each."""
        rows = slice(row * self.window, (row + 1) * self.window)
        columns = slice(column * self.window, (column + 1) * self.window)
        return self.before[rows, columns], self.rectified[rows, columns]


def stages(before: Map, pool: str, window: int) -> Stages:
    """Apply ReLU to a map, ``(H, W)``, and pool it in windows side by side.

    As in torch, rows and columns at the end that fill no window are left out.

    Raises:
        HookVizError: the map is smaller than a window.
    """
    if min(before.shape) < window:
        raise HookVizError(
            say(
                "A map of {rows}×{columns} cells has no room for a window of {window}×{window}. "
                "A layer further ahead has larger maps.",
                rows=before.shape[0],
                columns=before.shape[1],
                window=window,
            )
        )
    rectified = F.relu(torch.from_numpy(np.ascontiguousarray(before)))
    pooling = F.max_pool2d if pool == "max" else F.avg_pool2d
    pooled = pooling(rectified[None, None], window)[0, 0]
    return Stages(before, rectified.numpy(), pooled.numpy(), window)


def _picked_or_first(of_map: Stages, text: str) -> tuple[int, int]:
    """Return the cell of a text ``"row,column"``, or the first cell."""
    parts = text.split(",")
    if len(parts) != 2 or not all(part.isdecimal() for part in parts):
        return of_map.first_cell
    rows, columns = of_map.before.shape
    return min(int(parts[0]), rows - 1), min(int(parts[1]), columns - 1)


def before_relu(scene: LessonScene, layer: str) -> ActivationKey:
    """Return the key of the input of a conv layer's ReLU: its norm's output, or its own."""
    kinds = {info.name: info.kind for info in scene.trace.listed}
    key = ActivationKey(layer)
    for step in steps_after(scene.trace, layer):
        if "Norm" not in kinds[step.layer]:
            break
        key = step
    return key


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    layer = layer_of(scene, options["layer"])
    maps = maps_of(scene, before_relu(scene, layer.name))
    channel = channel_of(maps, options["channel"])
    of_map = stages(maps[channel], options["pool"], int(options["window"]))
    rows, columns = of_map.before.shape
    cell = _picked_or_first(of_map, options.get(CELL, ""))
    return {
        "row": cell[0],
        "column": cell[1],
        "cell_before": number(float(of_map.before[cell])),
        "cell_after": number(float(of_map.rectified[cell])),
        "layer": layer.name,
        "channel": channel,
        "channels": len(maps),
        "rows": rows,
        "columns": columns,
        "pooled_rows": of_map.pooled.shape[0],
        "pooled_columns": of_map.pooled.shape[1],
        "window": of_map.window,
        "in_window": of_map.window**2,
        "negative": float((of_map.before < 0).mean()),
        "zeros": float((of_map.rectified == 0).mean()),
        "layer_zeros": float((maps <= 0).mean()),
        "lowest": float(of_map.before.min()),
        "highest": float(of_map.before.max()),
        "pooled_highest": float(of_map.pooled.max()),
    }


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    layer = layer_of(scene, options["layer"])
    maps = maps_of(scene, before_relu(scene, layer.name))
    return {"layer": layer.name, "channel": str(channel_of(maps, options["channel"]))}


PART = Part(
    name="relu-pool",
    sentence="A channel's map before ReLU, after it, and after pooling in windows; a click on a "
    "cell shows the numbers that it came from.",
    options=(
        Option("layer", "first", "Whose channel."),
        Option("channel", STRONGEST, "A number, or strongest.", check_channel),
        Option(
            "shown", "pool", "How far the map is followed: before, relu or pool.", choice(_STAGES)
        ),
        Option("pool", "max", "Which pooling at first: max or average.", choice(_POOLS)),
        Option("window", "2", "Cells along the window's side at first.", whole_number(2, _LARGEST)),
    ),
    facts=_facts,
    link=_link,
)


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the maps side by side in the same colours, and below them the picked cell's numbers."""
    layer = layer_of(scene, options["layer"])
    maps = maps_of(scene, before_relu(scene, layer.name))
    channel = channel_of(maps, options["channel"])
    pools = options["shown"] == "pool"
    kind, window = (
        _controls(options, key, maps.shape[1:]) if pools else ("max", int(options["window"]))
    )
    of_map = stages(maps[channel], kind, window)
    first = of_map.first_cell
    cell = _picked_or_first(of_map, ",".join(map(str, picked(key, "cell", first))))
    start = {**options, CELL: ",".join(map(str, first))}
    moved = {"pool": kind, "window": str(window)} if pools else {}
    remember_options(key, {**moved, CELL: ",".join(map(str, cell))}, start)
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
    names = {name: say(title) for name, title in _POOLS.items()}
    with st.container(horizontal=True, vertical_alignment="bottom", key=f"{key}-controls"):
        kind = choose_button(say("Pooling"), names, key, "pool", first=options["pool"])
        sides = range(1, max(2, min(_LARGEST, *size)) + 1)
        label, first = say("Cells along the window's side"), int(options["window"])
        window = slide(label, sides, key, "window", first=first)
    return kind, window


def _pooled(of_map: Stages, cell: Cell) -> Cell:
    """Return the pooled cell of a cell's window, or the nearest one."""
    return within((cell[0] // of_map.window, cell[1] // of_map.window), of_map.pooled.shape)


def _show_maps(of_map: Stages, cell: Cell, key: str, last: str) -> None:
    """Draw the maps up to the last of `_STAGES`, each as large as the others."""
    before = grid_of(of_map.before[None])
    pick_cell = partial(pick, key, "cell")

    def pick_pooled(at: Cell) -> None:
        """Pick the largest cell of the window."""
        _, rectified = of_map.cells(*at)
        down, across = divmod(int(rectified.argmax()), of_map.window)
        pick_cell((at[0] * of_map.window + down, at[1] * of_map.window + across))

    def show_one(
        title: str, values: Map, at: Cell, on_pick: Callable[[Cell], None], name: str
    ) -> None:
        grid = grid_of(values[None], limits=before.limits)
        st.caption(f"**{title}** · {times(values.shape)}")
        show_map(grid, 0, values, at, on_pick, key=f"{key}-{name}")

    columns = st.columns(3 if last == "pool" else 2, gap="small", wrap=False)
    with columns[0]:
        show_one(say("Before"), of_map.before, cell, pick_cell, "before")
    if last != "before":
        with columns[1]:
            show_one(say("After ReLU"), of_map.rectified, cell, pick_cell, "rectified")
    if last == "pool":
        with columns[2]:
            show_one(say("Pooled"), of_map.pooled, _pooled(of_map, cell), pick_pooled, "pooled")


def _show_cell(of_map: Stages, cell: Cell) -> None:
    """Show the picked cell before and after ReLU in words."""
    words = say(
        "Row {row}, column {column}: ReLU makes {after} of {before}.",
        row=cell[0],
        column=cell[1],
        before=number(float(of_map.before[cell])),
        after=number(float(of_map.rectified[cell])),
    )
    st.html(f'<p class="hv-came-from">{escape(words)}</p>')


def _show_window(of_map: Stages, cell: Cell, kind: str) -> None:
    """Show the window of the picked cell before and after ReLU, and the pooled number."""
    row, column = _pooled(of_map, cell)
    before_window, window = of_map.cells(row, column)
    value = number(float(of_map.pooled[row, column]))
    result = (
        say("The largest of {count} is {value}.", count=window.size, value=value)
        if kind == "max"
        else say("The average of {count} is {value}.", count=window.size, value=value)
    )
    marked = int(window.argmax()) if kind == "max" else -1
    st.html(
        '<div class="hv-came-from">'
        + number_table(before_window, say("Before"), struck=before_window < 0)
        + '<span aria-hidden="true">→</span>'
        + number_table(window, say("After ReLU"), marked=marked)
        + f'<span aria-hidden="true">→</span><b>{escape(result)}</b></div>'
    )
