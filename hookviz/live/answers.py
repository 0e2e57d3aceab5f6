"""Encode a drawn frame as the bytes that the page gets for it.

An answer is the length of a text as uint32, little endian, that text in JSON, and pictures one
after the other, whose lengths the text has under ``blobs``.
"""

import json
import struct
from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np

from hookviz.drawing.framing import on_picture
from hookviz.drawing.palette import palette_png
from hookviz.drawing.scales import quantise
from hookviz.drawing.statistics import strongest_cells
from hookviz.drawing.tile_facts import json_numbers, tile_facts
from hookviz.explaining.receptive_fields.receptive_field import receptive_fields
from hookviz.language.saying import say
from hookviz.live.frames import DrawnFrame, FrameTimer
from hookviz.live.stream_options import StreamOptions
from hookviz.types import Model


def answer(
    number: int, drawn: DrawnFrame, model: Model, options: StreamOptions, timer: FrameTimer
) -> bytes:
    """Encode the answer to a frame: its facts, and the pictures.

    ==========  =======================================================================
    frame       its number
    blobs       bytes of each picture: the grid's sprite, and the picked channel's map; where its
                values are wanted, those alone
    grid        `tile_facts` of the sprite; ``title``, ``legend`` and ``shown`` in words; null where
                values are wanted
    scores      label and share of the five likeliest classes; empty without
    picked      of the picked channel, see `_picked`; null without
    values      of the picked channel's map as numbers, see `_values`; null without
    maxima      the highest value of every channel, in the order of the layer
    ms          milliseconds that each part took
    ==========  =======================================================================
    """
    capture, channel = drawn.capture, options.channel
    with timer.measure("encode"):
        picked = values = grid = None
        pictures = []
        if channel is not None and channel < drawn.grid.shape[0]:
            picked = _picked(drawn, model, channel, options.cell)
            values, levels = _values(drawn, channel) if options.values else (None, b"")
            pictures.append(levels or _map(drawn, channel))
        if values is None:
            grid = _grid(drawn)
            pictures.insert(0, drawn.grid.sprite)
        is_share = capture.answer is not None and capture.answer.is_share
        top = capture.top(5) if is_share else ()
        if not all(isfinite(each.share) for each in top):  # it says nothing
            top = ()
        facts = {
            "frame": number,
            "grid": grid,
            "scores": [[each.name, each.share] for each in top],
            "picked": picked,
            "values": values,
            "maxima": json_numbers(drawn.grid.stats.maximum),
        }
    return packed({**facts, "ms": timer.ms}, pictures)


def _grid(drawn: DrawnFrame) -> dict[str, Any]:
    grid = drawn.grid
    alt = say("{channels} of layer {layer} for this frame.", channels=grid.shown, layer=grid.title)
    facts = tile_facts(grid, alt[0].upper() + alt[1:], grid.sprite)
    return facts | {"title": grid.title, "legend": grid.legend, "shown": grid.shown}


def packed(facts: dict[str, Any], pictures: Sequence[bytes]) -> bytes:
    """Pack facts as JSON, and the pictures that they are about."""
    text = json.dumps({**facts, "blobs": list(map(len, pictures))}, allow_nan=False).encode()
    return b"".join((struct.pack("<I", len(text)), text, *pictures))


def _picked(
    drawn: DrawnFrame, model: Model, channel: int, cell: tuple[int, int] | None
) -> dict[str, Any]:
    """Describe the picked channel: its mean, its maximum and where that is, the value at `cell`.

    ``frame_box`` is what the strongest cell sees: top, left, bottom, right in pixels of the frame;
    null where that is not known.
    """
    values, stats = drawn.maps[channel].numpy(), drawn.grid.stats
    row, column = divmod(int(strongest_cells(values[None])[0]), values.shape[1])
    numbers = np.array([each[channel] for each in (stats.maximum, stats.minimum, stats.mean)])
    highest, lowest, mean = json_numbers(numbers)
    within = cell is not None and cell[0] < values.shape[0] and cell[1] < values.shape[1]
    at = values[cell] if within else np.float32(np.nan)
    return {
        "channel": channel,
        "max": highest,
        "min": lowest,
        "mean": mean,
        "cell": [row, column],
        "frame_box": _frame_box(drawn, model, row, column),
        "at": list(cell) if cell is not None and within else None,
        "value": json_numbers(np.array([at]))[0] if np.isfinite(at) else None,
    }


def _frame_box(drawn: DrawnFrame, model: Model, row: int, column: int) -> list[int] | None:
    model_input = drawn.capture.model_input
    field = receptive_fields(model, model_input).get(drawn.step)
    if field is None or model_input.crop is None or field.cells != tuple(drawn.maps.shape[1:]):
        return None
    size = (drawn.image.height, drawn.image.width)
    return list(on_picture(field.box(row, column), model_input.crop, drawn.image, size))


def _map(drawn: DrawnFrame, channel: int) -> bytes:
    """Draw the channel, one pixel a cell, in the grid's colours, in the grid or not."""
    limits, values = drawn.grid.limits, drawn.maps[channel : channel + 1].numpy()
    one = slice(channel, channel + 1)
    levels = quantise(values, limits.low[one], limits.high[one])
    return palette_png(levels[0], drawn.grid.palette)


def _values(drawn: DrawnFrame, channel: int) -> tuple[dict[str, Any], bytes]:
    """Return the channel's map as a byte a cell, row by row, and what the bytes mean.

    0 is ``low`` and 255 ``high``, its lowest and highest finite value; others stand as ``low``.
    """
    values = drawn.maps[channel].numpy().astype(np.float64)
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    shares = np.nan_to_num((values - low) / (high - low or 1.0), nan=0.0, posinf=0.0, neginf=0.0)
    rows, columns = values.shape
    facts = {"rows": rows, "columns": columns, "low": low, "high": high}
    return facts, np.round(shares * 255).astype(np.uint8).tobytes()
