"""Encode a drawn frame as the bytes that the page gets for it.

An answer is the length of a text as uint32, little endian, that text in JSON, and pictures one
after the other, whose lengths the text has under ``blobs``.
"""

import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from hookviz.drawing.framing import on_picture
from hookviz.drawing.palette import palette_png
from hookviz.drawing.scales import quantise
from hookviz.drawing.statistics import strongest_cells
from hookviz.drawing.tile_facts import json_numbers, tile_facts
from hookviz.explaining.receptive_field import receptive_fields
from hookviz.language.naming import class_label
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
    blobs       bytes of each picture: the grid's sprite, and the picked channel's map
    grid        `tile_facts` of the sprite; ``title``, ``legend`` and ``shown`` in words
    scores      label and probability of the five likeliest classes; empty without
    picked      of the picked channel, see `_picked`; null without
    maxima      the highest value of every channel, in the order of the layer
    ms          milliseconds that each part took
    ==========  =======================================================================
    """
    grid, capture = drawn.grid, drawn.capture
    with timer.measure("encode"):
        alt = say(
            "{channels} of layer {layer} for this frame.", channels=grid.shown, layer=grid.title
        )
        facts = tile_facts(grid, alt[0].upper() + alt[1:], grid.sprite)
        facts |= {"title": grid.title, "legend": grid.legend, "shown": grid.shown}
        pictures = [grid.sprite]
        picked = None
        if options.channel is not None and options.channel < grid.shape[0]:
            picked = _picked(drawn, model, options.channel, options.cell)
            pictures.append(_map(drawn, options.channel))
        top = () if capture.logits is None else capture.likeliest(5)
        scores = [[class_label(index, capture.categories), chance] for index, chance in top]
        facts = {
            "frame": number,
            "grid": facts,
            "scores": scores,
            "picked": picked,
            "maxima": json_numbers(grid.stats.maximum),
        }
    return packed({**facts, "ms": timer.ms}, pictures)


def packed(facts: dict[str, Any], pictures: Sequence[bytes]) -> bytes:
    """Pack facts as JSON, and the pictures that they are about."""
    text = json.dumps({**facts, "blobs": list(map(len, pictures))}, allow_nan=False).encode()
    return b"".join((struct.pack("<I", len(text)), text, *pictures))


def _picked(
    drawn: DrawnFrame, model: Model, channel: int, cell: tuple[int, int] | None
) -> dict[str, Any]:
    """Describe the picked channel: its maximum and where that is, and the value at `cell`.

    ``frame_box`` is what the strongest cell sees: top, left, bottom, right in pixels of the frame;
    null where that is not known.
    """
    values, stats = drawn.maps[channel].numpy(), drawn.grid.stats
    row, column = divmod(int(strongest_cells(values[None])[0]), values.shape[1])
    highest, lowest = json_numbers(np.array([stats.maximum[channel], stats.minimum[channel]]))
    within = cell is not None and cell[0] < values.shape[0] and cell[1] < values.shape[1]
    at = values[cell] if within else np.float32(np.nan)
    return {
        "channel": channel,
        "max": highest,
        "min": lowest,
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
