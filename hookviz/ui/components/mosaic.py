"""The grid of channels as an instrument: hover reads, a click or Enter picks a channel up."""

import hashlib
from collections.abc import Callable
from functools import cache
from typing import Any

import streamlit as st

from hookviz.drawing.colormaps import INF_LEVEL, LEVELS, NAN_LEVEL
from hookviz.drawing.grid import Grid
from hookviz.ui.components.files import data_url, packed, script, source


@cache
def _component() -> Any:
    return st.components.v2.component(
        "hookviz_mosaic",
        css=source("mosaic.css"),
        js=script("mosaic_parts.js", "tiles.js", "tiling.js", "mosaic.js"),
    )


Cell = tuple[int, int]
"""Row and column of a map."""


def mosaic(
    grid: Grid,
    alt: str,
    on_pick: Callable[[int, Cell | None], None],
    *,
    key: str = "mosaic",
    height: int | None = None,
) -> None:
    """Show the grid as wide as the page.

    `on_pick` gets the channel that a person picks up, and the cell where it was by pointer. Without
    a `height` in pixels it is as high as the window, "/" and the arrows reach it from anywhere, and
    the channel in the link is framed.
    """

    def picked() -> None:
        match st.session_state[key].get("picked"):
            case {"channel": int(channel), "cell": [int(row), int(column)]}:
                on_pick(channel, (row, column))
            case {"channel": int(channel)}:
                on_pick(channel, None)

    # Without what a click changes, so that the browser has it already when the grid is shown again.
    data = packed(_facts(grid, alt) | {"height": height}, grid.sprite)
    _component()(key=key, data=data, on_picked_change=picked)


def _facts(grid: Grid, alt: str) -> dict[str, Any]:
    geometry, order = grid.sprite_geometry, grid.order
    red, green, blue = (grid.palette[:, band].astype(int) for band in range(3))
    numbers = {
        "lowest": grid.stats.minimum,
        "mean": grid.stats.mean,
        "highest": grid.stats.maximum,
        "zeros": grid.stats.zeros,
    }
    return {
        "key": hashlib.blake2b(grid.sprite, digest_size=8).hexdigest(),
        "alt": alt,
        "geometry": {
            "columns": geometry.columns,
            "tile": [geometry.tile_height, geometry.tile_width],
            "pitch": list(geometry.pitch),
            "width": geometry.width,
            "height": geometry.height,
        },
        "order": order.tolist(),
        "stats": {name: _json(values[order]) for name, values in numbers.items()},
        "limits": {"low": _json(grid.limits.low[order]), "high": _json(grid.limits.high[order])},
        "palette": (red * 65536 + green * 256 + blue)[:255].tolist(),
        "levels": LEVELS,
        "nan": NAN_LEVEL,
        "infinity": INF_LEVEL,
        "bar": data_url(grid.bar()),
        "ticks": [[fraction, label] for fraction, label in grid.ticks],
    }


def _json(values: Any) -> list[float | None]:
    """As many digits as float32 has; None where there is no number, for JSON has no NaN."""
    return [float(f"{value:.8g}") if value == value else None for value in values.tolist()]  # noqa: PLR0124
