"""Follow one map through ReLU and pooling, and find the cells that one number came from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F

from hookviz.capturing.layer_trace import steps_after
from hookviz.errors import HookVizError
from hookviz.language.saying import mark, say
from hookviz.lessons.layers import layer_of
from hookviz.lessons.maps import STRONGEST, Map, channel_of, check_channel, maps_of
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice, whole_number
from hookviz.types import ActivationKey
from hookviz.wording import number

POOLS = {"max": mark("Largest"), "average": mark("Average")}
"""The kinds of pooling, as a lesson writes them and as people read them."""

SHOWN = ("before", "relu", "pool")
"""How far a map can be followed."""

CELL = "cell"
"""Among the options the cell that a learner picked, ``"row,column"``; a lesson's file has none."""

LARGEST = 6
"""Cells along a window's side, at most."""


@dataclass(frozen=True, eq=False, slots=True)
class Stages:
    """One channel's map before ReLU, after it, and after pooling.

    Attributes:
        before: as it comes from the convolution and its norm, if there is one, ``(H, W)``.
        rectified: after ReLU, ``(H, W)``.
        pooled: after pooling, ``(H // window, W // window)``.
        window: how many cells each pooled one is made of, along either side.
    """

    before: Map = field(repr=False)
    rectified: Map = field(repr=False)
    pooled: Map = field(repr=False)
    window: int

    @property
    def first_cell(self) -> tuple[int, int]:
        """The cell that is picked at first: below zero, so that ReLU changes it, if any is.

        It is the lowest of the highest window that has both signs; else the lowest of all.
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
        """Return the cells of a pooled one, before and after ReLU, ``(window, window)`` each."""
        rows = slice(row * self.window, (row + 1) * self.window)
        columns = slice(column * self.window, (column + 1) * self.window)
        return self.before[rows, columns], self.rectified[rows, columns]


def stages(before: Map, pool: str, window: int) -> Stages:
    """Apply ReLU to a map, ``(H, W)``, and then pool it in windows side by side.

    Rows and columns at the end that fill no window are left out, as torch does it.

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


def picked_or_first(of_map: Stages, text: str) -> tuple[int, int]:
    """Return the cell that a link names as ``"row,column"``, else the first."""
    parts = text.split(",")
    if len(parts) != 2 or not all(part.isdecimal() for part in parts):
        return of_map.first_cell
    rows, columns = of_map.before.shape
    return min(int(parts[0]), rows - 1), min(int(parts[1]), columns - 1)


def before_relu(scene: LessonScene, layer: str) -> ActivationKey:
    """Return the address of what a conv layer's ReLU is given: its norm's output, else its own."""
    kinds = {info.name: info.kind for info in scene.trace.listed}
    address = ActivationKey(layer)
    for step in steps_after(scene.trace, layer):
        if "Norm" not in kinds[step.layer]:
            break
        address = step
    return address


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    layer = layer_of(scene, options["layer"])
    maps = maps_of(scene, before_relu(scene, layer.name))
    channel = channel_of(maps, options["channel"])
    of_map = stages(maps[channel], options["pool"], int(options["window"]))
    rows, columns = of_map.before.shape
    cell = picked_or_first(of_map, options.get(CELL, ""))
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
            "shown", "pool", "How far the map is followed: before, relu or pool.", choice(SHOWN)
        ),
        Option("pool", "max", "Which pooling at first: max or average.", choice(POOLS)),
        Option("window", "2", "Cells along the window's side at first.", whole_number(2, LARGEST)),
    ),
    facts=_facts,
    link=_link,
)
