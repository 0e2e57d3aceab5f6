"""Show one map, large: exact values under the pointer, and a click looks at a cell."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.grid import Grid
from hookviz.explorer.encoding import channel_map
from hookviz.ui.components.files import mount


def show_map(
    grid: Grid,
    channel: int,
    values: NDArray[np.float32],
    cell: tuple[int, int],
    on_pick: Callable[[tuple[int, int]], None],
    *,
    key: str = "map",
) -> None:
    """Show a channel's values ``(H, W)`` in the grid's colours; `on_pick` gets the cell chosen."""

    def picked(sent: object) -> None:
        match sent:
            case [int(row), int(column)]:
                on_pick((row, column))

    mount("map", key, channel_map(grid, channel, values) | {"cell": list(cell)}, picked=picked)
