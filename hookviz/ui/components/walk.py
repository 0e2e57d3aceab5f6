"""The kernel's walk over the first rows of one of its inputs, to play or to step through."""

from functools import cache
from typing import Any

import numpy as np
import streamlit as st

from hookviz.drawing.colormaps import NAN_COLOUR
from hookviz.explaining.layer_call import LayerCall
from hookviz.ui.components.files import script, source

_ROWS, _COLUMNS = 2, 20
"""How far it walks: a screen's width of a large map, and far enough to see it turn the corner."""


@cache
def _component() -> Any:
    return st.components.v2.component("hookviz_walk", css=source("walk.css"), js=script("walk.js"))


def walk(call: LayerCall, channel: int, input_channel: int) -> None:
    """Show how `channel` comes from the layer's input channel number `input_channel`."""
    _component()(key="walk", data=_data(call, channel, input_channel))


def _data(call: LayerCall, channel: int, input_channel: int) -> dict[str, Any]:
    rows, columns = min(_ROWS, call.output.shape[1]), min(_COLUMNS, call.output.shape[2])
    inputs = call.inputs_of(channel)
    kernel = call.kernel[channel, input_channel - inputs.start]
    tall, wide = (
        (count - 1) * stride + dilation * (size - 1) + 1
        for count, stride, dilation, size in zip(
            (rows, columns), call.stride, call.dilation, kernel.shape, strict=True
        )
    )
    ys = np.arange(tall)[:, None] - call.corner[0]
    xs = np.arange(wide) - call.corner[1]
    inside = (ys >= 0) & (ys < call.size[0]) & (xs >= 0) & (xs < call.size[1])
    walked = "first row" if rows == 1 else f"first {rows} rows"
    return {
        "name": f"{call.layer}/{channel}/{input_channel}",
        "rows": rows,
        "columns": columns,
        "stride": list(call.stride),
        "dilation": list(call.dilation),
        "kernel": _numbers(kernel),
        "input": _numbers(call.padded[input_channel, :tall, :wide]),
        "inside": inside.tolist(),
        "output": _numbers(call.output[channel, :rows, :columns]),
        "bias": None if call.bias is None else float(call.bias[channel]),
        "others": len(inputs) - 1,
        "notFinite": NAN_COLOUR,
        "says": {
            "input": f"input {input_channel}, its top left corner; padding is grey",
            "output": f"channel {channel}, the {walked} as they come out",
        },
    }


def _numbers(values: Any) -> list[list[float | None]]:
    """Rows of numbers; None where there is no finite one, for JSON has no NaN."""
    return [[float(f"{v:.8g}") if np.isfinite(v) else None for v in row] for row in values.tolist()]
