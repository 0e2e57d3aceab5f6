"""Collect what a browser needs beside a grid's sprite to lay out, paint and read out the tiles."""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.colormaps import INF_LEVEL, LEVELS, NAN_LEVEL
from hookviz.drawing.grid import Grid
from hookviz.drawing.layout import Geometry
from hookviz.markup import data_url


def tile_facts(grid: Grid, alt: str, sprite: bytes) -> dict[str, Any]:
    """Return the facts, ready for JSON; numbers per channel are in the order of the tiles.

    Args:
        grid: whose tiles they are about.
        alt: what the picture shows, for who can't see it.
        sprite: the picture that goes with them: the grid's own, or a pair's.
    """
    geometry, order = grid.sprite_geometry, grid.order
    red, green, blue = (grid.palette[:, band].astype(int) for band in range(3))
    return {
        "key": hashlib.blake2b(sprite, digest_size=8).hexdigest(),
        "alt": alt,
        "geometry": geometry_facts(geometry),
        "order": order.tolist(),
        "stats": channel_facts(grid),
        "limits": {
            "low": json_numbers(grid.limits.low[order]),
            "high": json_numbers(grid.limits.high[order]),
        },
        "palette": (red * 65536 + green * 256 + blue)[:255].tolist(),
        "levels": LEVELS,
        "nan": NAN_LEVEL,
        "infinity": INF_LEVEL,
        "bar": data_url(grid.bar()),
        "ticks": [[fraction, label] for fraction, label in grid.ticks],
    }


def geometry_facts(geometry: Geometry) -> dict[str, Any]:
    """Return the geometry of the tiles in a picture, ready for JSON."""
    return {
        "columns": geometry.columns,
        "tile": [geometry.tile_height, geometry.tile_width],
        "pitch": list(geometry.pitch),
        "width": geometry.width,
        "height": geometry.height,
    }


def channel_facts(grid: Grid) -> dict[str, list[float | None]]:
    """Return each channel's statistics, in the order of the tiles."""
    stats = grid.stats
    numbers = {
        "lowest": stats.minimum,
        "mean": stats.mean,
        "highest": stats.maximum,
        "zeros": stats.zeros,
    }
    return {name: json_numbers(values[grid.order]) for name, values in numbers.items()}


def json_numbers(values: NDArray[np.floating[Any]]) -> list[float | None]:
    """Round to the digits that float32 has; None where there is no number, for JSON has no NaN."""
    return [float(f"{value:.8g}") if value == value else None for value in values.tolist()]  # noqa: PLR0124
