"""Answer with a channel's kernel: its slices, its strongest inputs, and its walk over one."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.grid import make_grid
from hookviz.drawing.pictures import encode_png, kernel_picture
from hookviz.explaining.layers import ranking
from hookviz.explaining.layers.layer_call import LayerCall
from hookviz.explorer.encoding import float32_text, robust_largest
from hookviz.explorer.glossary import explained
from hookviz.explorer.layers import resolve
from hookviz.explorer.origin import cell_of_question, layer_call, upstream_of
from hookviz.explorer.question import Answer, NotThereError, Report, asked_number, is_below, written
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.language.saying import say
from hookviz.markup import data_url
from hookviz.types import LayerInfo
from hookviz.wording import number

_MOST_LINKS, _MOST_CHOICES = 6, 64
_SIDE_PX = 320  # of a magnified kernel in colour, in whole steps
_LARGEST = 256
"""Rows and columns of the input that are sent at most: of a larger one, those around the cell."""


def answer_kernel(
    subject: Subject, view: View, facts: Mapping[str, Any], _report: Report
) -> Answer:
    """Answer with a channel's kernel: a slice for each input, in colour where those are colours.

    Raises:
        NotThereError: the channel does not exist.
        HookVizError: the layer is no plain convolution, or can't be recorded.
    """
    resolved = resolve(subject, view)
    layer, call = resolved.layer, layer_call(subject, resolved)
    channel = asked_number(facts, "channel", len(call.kernel), call.layer)
    kernel = call.kernel[channel].numpy()
    count, height, width = kernel.shape
    norm = float(np.sqrt(np.square(kernel, dtype=np.float64).sum()))
    upstream = upstream_of(subject, layer)
    sees_colours = upstream is None and layer.index == 0 and count == 3 and call.groups == 1
    return Answer(
        {
            "says": explained(
                say(
                    "{count:,} × {height} × {width} weights, one {height}×{width} slice for each "
                    "of {input_channels}. Norm (root of the sum of squares): {norm}.",
                    count=count,
                    height=height,
                    width=width,
                    input_channels=_inputs(count, call.groups),
                    norm=number(norm),
                )
            ),
            **slices(
                kernel,
                say("The kernel's slices, one for each input channel"),
                subject.colours.diverging,
            ),
            "colour": _in_colour(kernel, channel) if sees_colours else None,
            "byWeight": {
                "caption": say("Inputs with the largest weights (norm of the slice):"),
                "rows": _rows(ranking.strongest_by_weight(call, channel), upstream),
            },
            "byContribution": {
                "caption": say("Inputs that add most to this very map (mean over its cells):"),
                "rows": _rows(ranking.strongest_by_contribution(call, channel), upstream),
            },
            "upstream": upstream,
            "note": "" if upstream is not None or not layer.kernel_size else _note(layer),
        }
    )


def slices(values: NDArray[np.float32], says: str, colormap: str) -> dict[str, str]:
    """Describe small maps, ``(N, h, w)``, as one picture of tiles on one symmetric scale.

    Args:
        values: the maps.
        says: their title.
        colormap: name of a diverging one.
    """
    aspect = 4.0 if len(values) > 8 else float(len(values))  # a few stand in one row
    grid = make_grid(values, scale="symmetric", colormap=colormap, aspect=aspect, width=640)
    high = float(grid.limits.high[0])
    return {
        "slices": data_url(grid.png()),
        "slicesAlt": f"{says}. {grid.legend}",
        "ends": say(
            "{title}; from {low_colour} {low_value} to {high_colour} {high_value}",
            title=says,
            low_colour=say(grid.colormap.low),
            low_value=number(-high),
            high_colour=say(grid.colormap.high),
            high_value=number(high),
        ),
    }


def _inputs(count: int, groups: int) -> str:
    """Return the words for the kernel's `count` input channels, in a layer of `groups` groups."""
    if groups == 1:
        return say("the {count:,} input channels", count=count)
    if count > 1:
        return say("its group’s {count:,} input channels", count=count)
    return say("its group’s {count:,} input channels (depthwise)", count=count)


def _in_colour(kernel: NDArray[np.float32], channel: int) -> dict[str, str]:
    """Describe a kernel ``(3, h, w)`` as a magnified picture; grey is 0, the largest |w| full."""
    small = kernel_picture(kernel)
    step = max(1, _SIDE_PX // max(small.shape[:2]))
    return {
        "picture": data_url(encode_png(small.repeat(step, 0).repeat(step, 1))),
        "alt": say("The kernel of channel {channel} in colour.", channel=channel),
        "caption": say("the three slices as red, green and blue; grey is 0"),
    }


def _rows(strongest: ranking.Ranking, upstream: str | None) -> list[dict[str, Any]]:
    """Describe the first inputs of a ranking, each with the channel that it links to."""
    return [
        {
            "input": index,
            "value": number(amount),
            "says": say(
                "input {input_channel} · {amount}", input_channel=index, amount=number(amount)
            ),
            "hint": ""
            if upstream is None
            else say("channel {input_channel} of {source}", input_channel=index, source=upstream),
        }
        for index, amount in strongest[:_MOST_LINKS]
    ]


def _note(layer: LayerInfo) -> str:
    """Return why the inputs link to no channels of a layer."""
    if layer.index == 0:
        return say("They are the image's own channels.")
    return say(
        "Several maps were added or joined before this layer, so that its inputs are "
        "not the channels of one conv layer, and lead to none."
    )


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


def answer_walk(subject: Subject, view: View, facts: Mapping[str, Any], _report: Report) -> Answer:
    """Answer with a channel's walk over its `input`, by default over the input that adds most.

    `chosen` is the number of the input, for `input` has the values of its map.

    Raises:
        NotThereError: the channel, cell or input does not exist.
        HookVizError: the layer is no plain convolution, or can't be recorded.
    """
    resolved = resolve(subject, view)
    cell = cell_of_question(subject, resolved, facts)
    call = layer_call(subject, resolved)
    inputs = call.inputs_of(cell.channel)
    strongest = ranking.strongest_by_contribution(call, cell.channel)
    most = strongest[0][0]
    chosen = facts.get("input")
    if chosen is None:
        chosen = most
    if not is_below(chosen, inputs.stop, inputs.start):
        raise NotThereError(
            say(
                "Channel {channel} of {layer} has no input {index}: its inputs are {first} to "
                "{last}.",
                channel=cell.channel,
                layer=call.layer,
                index=written(chosen),
                first=inputs.start,
                last=inputs.stop - 1,
            )
        )
    offered = [index for index, _ in strongest[:_MOST_CHOICES]]
    if chosen not in offered:  # of a link to a weak one
        offered.append(chosen)
    return Answer(
        {
            **kernel_walk(call, cell.channel, chosen, cell.on(call)),
            "inputs": [
                {
                    "value": index,
                    "says": say("input {name}, which adds most", name=index)
                    if index == most
                    else say("input {name}", name=index),
                }
                for index in offered
            ],
            "chosen": chosen,
            "colours": subject.colours.diverging,
        }
    )
