"""Answer what a channel's kernel is: its slices, and the inputs that count most in it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.grid import make_grid
from hookviz.drawing.pictures import encode_png, kernel_picture
from hookviz.explaining.layers import ranking
from hookviz.explorer.asked import asked_number
from hookviz.explorer.glossary import explained
from hookviz.explorer.layers import resolve
from hookviz.explorer.origin import layer_call, upstream_of
from hookviz.explorer.question import Answer, Report
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.language.saying import say
from hookviz.markup import data_url
from hookviz.types import LayerInfo
from hookviz.wording import number

_MOST_LINKS = 6
_SIDE = 320  # pixels that a kernel in colour is magnified to, in whole steps


def answer_kernel(
    subject: Subject, view: View, facts: Mapping[str, Any], _report: Report
) -> Answer:
    """Answer what a channel's kernel is: a slice for each input, in colour where those are colours.

    Raises:
        NotThereError: there is no such channel.
        HookVizError: the layer is no plain convolution, or can't be recorded.
    """
    looked = resolve(subject, view)
    layer, call = looked.layer, layer_call(subject, looked)
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
        values: what is drawn.
        says: what it is.
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
    """Say which input channels a kernel has a slice for, in a layer of `groups` groups."""
    if groups == 1:
        return say("the {count:,} input channels", count=count)
    if count > 1:
        return say("its group’s {count:,} input channels", count=count)
    return say("its group’s {count:,} input channels (depthwise)", count=count)


def _in_colour(kernel: NDArray[np.float32], channel: int) -> dict[str, str]:
    """Describe a kernel ``(3, h, w)`` as a magnified picture; grey is 0, the largest |w| full."""
    small = kernel_picture(kernel)
    step = max(1, _SIDE // max(small.shape[:2]))
    return {
        "picture": data_url(encode_png(small.repeat(step, 0).repeat(step, 1))),
        "alt": say("The kernel of channel {channel} in colour.", channel=channel),
        "caption": say("the three slices as red, green and blue; grey is 0"),
    }


def _rows(strongest: ranking.Ranking, upstream: str | None) -> list[dict[str, Any]]:
    """Describe the first inputs of a ranking, and where each leads."""
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
    """Say why the inputs lead to no channels of a layer."""
    if layer.index == 0:
        return say("They are the image's own channels.")
    return say(
        "Several maps were added or joined before this layer, so that its inputs are "
        "not the channels of one conv layer, and lead to none."
    )
