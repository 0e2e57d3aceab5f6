"""Encode arrays for JSON, and one channel's map with its picture and colour bar."""

import base64
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.grid import Grid
from hookviz.language.saying import say
from hookviz.markup import data_url


def float32_text(values: NDArray[Any]) -> str:
    """Encode values as little-endian float32 in base64, which `floats` in ``shared.js`` reads.

    >>> float32_text(np.array([1.0, -2.0]))
    'AACAPwAAAMA='
    """
    return base64.b64encode(values.astype("<f4").tobytes()).decode("ascii")


def rows_of_numbers(values: NDArray[Any]) -> list[list[float | None]]:
    """Return a matrix in 5 significant digits, None for NaN and infinity, which JSON lacks.

    >>> rows_of_numbers(np.array([[1 / 3, np.nan]]))
    [[0.33333, None]]
    """
    return [[float(f"{v:.5g}") if np.isfinite(v) else None for v in row] for row in values.tolist()]


def json_facts(value: Any) -> Any:
    """Replace NaN and infinity, which JSON lacks, by the words that JavaScript's ``Number`` reads.

    >>> json_facts({"term": float("-inf"), "rows": [1.0, float("nan")]})
    {'term': '-Infinity', 'rows': [1.0, 'NaN']}
    """
    if isinstance(value, Mapping):
        return {key: json_facts(each) for key, each in value.items()}
    if isinstance(value, list):
        return [json_facts(each) for each in value]
    if isinstance(value, tuple):
        return tuple(json_facts(each) for each in value)
    if not isinstance(value, float) or math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def largest(values: NDArray[Any]) -> float:
    """Return the largest finite |value|; 0.0 without any."""
    sizes = np.abs(values[np.isfinite(values)])
    return float(sizes.max()) if sizes.size else 0.0


def robust_largest(values: NDArray[Any]) -> float:
    """Return the 99th percentile of finite |values|, as the grid has it; the largest if it is 0."""
    sizes = np.abs(values[np.isfinite(values)])
    if not sizes.size:
        return 0.0
    return float(np.percentile(sizes, 99, method="nearest")) or float(sizes.max())


MOST_VALUES = 1 << 16
"""Cells of the largest map whose values are sent, 350 kB as text; a larger one has only colours."""


def channel_map(
    grid: Grid, channel: int, values: NDArray[np.float32], *, is_painted: bool = True
) -> dict[str, Any]:
    """Describe a channel's map in the grid's colours.

    Args:
        grid: the layer's channels as drawn.
        channel: number of the channel.
        values: of the map, ``(H, W)``.
        is_painted: include values and pictures; a client with the layer's values needs none.
    """
    rows, columns = values.shape
    facts = {
        "says": say(
            "The map of channel {channel}: arrow keys move, Enter looks at a cell.",
            channel=channel,
        ),
        "rows": rows,
        "columns": columns,
        "ticks": [[fraction, label] for fraction, label in grid.ticks_of(channel)],
    }
    if not is_painted:
        return facts
    return facts | {
        "picture": data_url(grid.channel_png(channel, 1)),
        "values": float32_text(values) if values.size <= MOST_VALUES else None,
        "bar": data_url(grid.bar()),
    }
