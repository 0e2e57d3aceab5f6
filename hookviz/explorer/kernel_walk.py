"""Describe a kernel's walk over one of its inputs: the numbers of every step."""

from typing import Any

from hookviz.explaining.layers.layer_call import LayerCall
from hookviz.explorer.encoding import float32_text, robust_largest
from hookviz.language.saying import say

_LARGEST = 256
"""Rows and columns of the input that are sent at most: of a larger one, those around the cell."""


def kernel_walk(
    call: LayerCall, channel: int, input_channel: int, cell: tuple[int, int]
) -> dict[str, Any]:
    """Describe how a channel comes from one of the layer's input channels, cell by cell.

    Args:
        call: the recorded conv layer.
        channel: number of the output channel.
        input_channel: number of an input channel of the channel's group.
        cell: row and column of the output where the walk begins.
    """
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
        "input": float32_text(layer_input),
        "inputSize": sizes,
        # Where the input without its padding lies in what is sent.
        "inside": [call.corner[0] - top, call.corner[1] - left, *call.size],
        "output": float32_text(layer_output),
        "most": [robust_largest(layer_input), robust_largest(kernel), robust_largest(layer_output)],
        "bias": None if call.bias is None else float(call.bias[channel]),
        "others": call.kernel.shape[1] - 1,
        "says": [
            say("input {input_channel}, padding grey", input_channel=input_channel),
            say("channel {channel}, cell by cell", channel=channel),
        ],
    }
