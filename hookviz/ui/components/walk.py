"""Show the kernel's walk over one of its inputs, to play or to step from the chosen cell."""

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.explaining.layer_call import LayerCall
from hookviz.language.saying import say
from hookviz.ui.components.files import component, packed

_LARGEST = 256
"""Rows and columns of the input that are sent at most: of a larger one, those around the cell."""


def walk(
    call: LayerCall,
    channel: int,
    input_channel: int,
    cell: tuple[int, int],
    colormap: str,
    *,
    key: str = "walk",
    grey: tuple[str, str] | None = None,
) -> None:
    """Show how `channel` comes from the layer's input channel number `input_channel`.

    It starts at `cell`, (row, column) of the output; `colormap` is a diverging one. An input that
    is a grey picture, 0 black to 1 white, is drawn as one where `grey` says what the two maps are.
    """
    data = _data(call, channel, input_channel, cell)
    if grey is not None:
        data = {**data, "grey": True, "says": grey}
    component("walk")(key=key, data=packed({**data, "colours": colormap}))


def _data(
    call: LayerCall, channel: int, input_channel: int, cell: tuple[int, int]
) -> dict[str, Any]:
    kernel = call.kernel[channel, input_channel - call.inputs_of(channel).start].numpy()
    firsts, counts, starts, sizes = [], [], [], []
    for axis in (0, 1):
        cells, stride = call.output.shape[axis + 1], call.stride[axis]
        wide = call.dilation[axis] * (kernel.shape[axis] - 1) + 1  # of the input, under the kernel
        count = min(cells, 1 + max(0, _LARGEST - wide) // stride)
        first = min(max(0, cell[axis] - count // 2), cells - count)
        firsts.append(first)
        counts.append(count)
        starts.append(first * stride)
        sizes.append((count - 1) * stride + wide)
    (top, left), (height, width) = starts, sizes
    layer_input = call.padded[input_channel, top : top + height, left : left + width].numpy()
    rows, columns = (slice(first, first + n) for first, n in zip(firsts, counts, strict=True))
    layer_output = call.output[channel, rows, columns].numpy()
    return {
        "name": f"{call.layer}/{channel}/{input_channel}/{cell}",
        "size": counts,
        "first": firsts,
        "cell": list(cell),
        "stride": list(call.stride),
        "dilation": list(call.dilation),
        "kernel": [[float(f"{weight:.8g}") for weight in line] for line in kernel.tolist()],
        "input": _base64(layer_input),
        "inputSize": sizes,
        # Where the input without its padding lies in what is sent.
        "inside": [call.corner[0] - top, call.corner[1] - left, *call.size],
        "output": _base64(layer_output),
        "most": [_largest(layer_input), _largest(kernel), _largest(layer_output)],
        "bias": None if call.bias is None else float(call.bias[channel]),
        "others": call.kernel.shape[1] - 1,
        "says": [
            say("input {input_channel}, padding grey", input_channel=input_channel),
            say("channel {channel}, cell by cell", channel=channel),
        ],
    }


def _base64(values: NDArray[np.float32]) -> str:
    return base64.b64encode(values.astype("<f4").tobytes()).decode()


def _largest(values: NDArray[np.float32]) -> float:
    """Return the 99th percentile of all sizes, as the grid's own scale has it; else the largest."""
    sizes = np.abs(values[np.isfinite(values)])
    if not sizes.size:
        return 0.0
    return float(np.percentile(sizes, 99, method="nearest")) or float(sizes.max())
