"""Show a conv layer's weights: its kernels as pictures, their norms, and near-duplicates."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import constants, in_order
from hookviz.codegen.script_text import source_of
from hookviz.drawing.grid import make_grid
from hookviz.drawing.layout import lay_out, mosaic
from hookviz.drawing.panels import ChartPanel, GridPanel, ImagePanel, Panel, TablePanel, TextPanel
from hookviz.explaining.layers.conv_kernels import (
    ConvKernels,
    Kernels,
    compare_kernels,
    near_duplicates,
    outputs_first,
)
from hookviz.language.saying import mark, say, say_count
from hookviz.lenses.contract.lens import SEES, Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import LayerChoice, OneOf, RealNumber, WholeNumber
from hookviz.types import LayerInfo, Pixels
from hookviz.wording import number


def run(
    subject: Subject, *, layer: str, show: str, channel: int, sort: str, threshold: float
) -> LensOutput:
    """Show the kernels as a grid, their norms, and the pairs that point nearly the same way.

    The weights are the ones that the layer hands to torch's convolution, weight norm and the like
    included, as ``(output channels, inputs per kernel, taps down, taps across)`` whatever the
    layer's kind. Norms are ``‖w‖₂ = √Σ w²`` over all of a kernel; cosines as in
    `hookviz.explaining.layers.conv_kernels`.

    Raises:
        SettingError: no kernel of the layer has that many input channels.
    """
    info = next(conv for conv in subject.convs if conv.name == layer)
    compared = compare_kernels(subject.model, info, threshold, subject.progress)
    kernels, norms = compared.kernels, compared.norms
    input_channel = channel if show == "one input" else None
    shown, grid = compared.tiles(input_channel), compared.grid(input_channel)
    panels: list[Panel] = [
        TextPanel(_answer(layer, len(kernels), compared.duplicate_count), "answer"),
        TextPanel(_summarize(info, kernels)),
        GridPanel(grid.title, grid),
    ]
    if kernels.shape[1] == 3 and info.groups == 1:
        panels.insert(2, _in_colour(kernels))
    panels.append(_chart(norms, sort))
    if compared.duplicate_count and len(shown) == len(kernels):
        panels.append(_side_by_side(shown, compared.pairs, grid.limits.scale))
    values: dict[str, NDArray[Any]] = {
        "kernels": kernels,
        "shown": shown,
        "norms": norms,
        "pairs": compared.pairs,
        "cosines": compared.cosines,
    }
    return (*panels, _pairs(compared, threshold, info)), values


def _answer(layer: str, count: int, twins: int) -> str:
    """Say in one sentence how many patterns there are, and how many of them are alike."""
    patterns = say_count(
        "{layer} looks for {count:,} pattern",
        "{layer} looks for {count:,} patterns",
        count,
        layer=layer,
    )
    if not twins:
        return say("{patterns}, each another one.", patterns=patterns)
    pairs = say_count("{count:,} pair", "{count:,} pairs", twins)
    return say(
        "{patterns}, and {pairs} of them are nearly the same.", patterns=patterns, pairs=pairs
    )


def _in_colour(kernels: Kernels) -> ImagePanel:
    """Draw kernels with three input channels as red, green and blue; mid-grey is zero."""
    end = float(np.abs(kernels).max()) or 1.0
    levels = np.rint(127.5 + 127.5 * kernels / end).astype(np.uint8)  # (N, 3, H, W)
    geometry = lay_out(len(levels), *levels.shape[2:], width=900)
    planes = [mosaic(levels[:, colour], geometry, 255) for colour in range(3)]
    picture: Pixels = np.stack(planes, axis=-1)
    return ImagePanel(
        say("Kernels in colour"),
        picture,
        say("{count} kernels as small colour pictures.", count=len(levels)),
        say(
            "Input channels 0, 1 and 2 are red, green and blue. Mid-grey is zero; the "
            "brightest and the darkest stand for ±{end_value} in all kernels.",
            end_value=number(end),
        ),
        geometry,
    )


def _chart(norms: NDArray[np.float64], sort: str) -> ChartPanel:
    order = np.argsort(-norms, kind="stable") if sort == "norm" else np.arange(len(norms))
    says = say("largest first") if sort == "norm" else say("channel by channel")
    return ChartPanel(
        say("Norm of each kernel, {order}", order=says),
        tuple(map(str, order)),
        {"‖w‖₂": norms[order]},
        unit="‖w‖₂",
        places=say("channel") if sort != "norm" else say("place, the largest norm first"),
        caption=say("A kernel of norm 0 gives the same value everywhere, whatever the image."),
    )


def _side_by_side(shown: Kernels, pairs: NDArray[np.int64], scale: str) -> GridPanel:
    """Draw each pair as one tile: the kernel, and to its right its twin."""
    tiles = np.concatenate([shown[pairs[:, which]] for which in (0, 1)], axis=2)
    title = say("Near-duplicates side by side")
    return GridPanel(
        title,
        make_grid(tiles, scale=scale, title=title, width=900),
        say(
            "A tile's left half is a kernel and its right half the twin, in the order of the table."
        ),
    )


def _pairs(compared: ConvKernels, threshold: float, info: LayerInfo) -> TablePanel | TextPanel:
    pairs, cosines, norms = compared.pairs, compared.cosines, compared.norms
    count = compared.duplicate_count
    if not len(pairs):
        return TextPanel(say("No two kernels of this layer have a shape to compare."), "note")
    if not count:
        first, second = pairs[0].tolist()
        return TextPanel(
            say(
                "No two kernels are near-duplicates: the closest, {channel} and {twin}, have "
                "a cosine similarity of {cosine}.",
                channel=first,
                twin=second,
                cosine=number(float(cosines[0])),
            )
        )
    rows = tuple(
        (a, b, round(float(cosine), 4), number(norms[a]), number(norms[b]))
        for (a, b), cosine in zip(pairs.tolist(), cosines, strict=True)
    )
    more = say(", the closest {count} of them", count=len(rows)) if len(rows) < count else ""
    apart = say(" Kernels of different groups look at different inputs.") if info.groups > 1 else ""
    return TablePanel(
        (
            say_count(
                "Near-duplicates: {count:,} pair of kernels",
                "Near-duplicates: {count:,} pairs of kernels",
                max(1, count),
                count=count,
            )
        ),
        (
            say("channel"),
            say("its twin"),
            say("cosine similarity"),
            "‖w‖₂",
            say("‖w‖₂ of its twin"),
        ),
        rows,
        say(
            "Pairs with |cosine| of {threshold:g} or more{note}. 1 is the same kernel at "
            "another strength, −1 its opposite.{groups}",
            threshold=threshold,
            note=more,
            groups=apart,
        ),
    )


def _summarize(info: LayerInfo, kernels: Kernels) -> str:
    outputs, inputs, tall, wide = kernels.shape
    says = say(
        "{layer} ({kind}) has {kernel_count:,} kernels, one per output channel, each of "
        "{input_count:,}×{height}×{width} weights (input channels × taps): {weight_count:,} in "
        "all, from {smallest} to {largest}.",
        layer=info.name,
        kind=info.kind,
        kernel_count=outputs,
        input_count=inputs,
        height=tall,
        width=wide,
        weight_count=kernels.size,
        smallest=number(float(kernels.min())),
        largest=number(float(kernels.max())),
    )
    if info.groups > 1 and inputs == 1:
        says += say(" It is depthwise: each kernel sees one input channel alone.")
    elif info.groups > 1:
        says += say(
            " It has {groups} groups: a kernel sees {seen_count:,} of the {input_count:,} input "
            "channels, and numbers them from 0.",
            groups=info.groups,
            seen_count=inputs,
            input_count=inputs * info.groups,
        )
    if "Transpose" in info.kind:
        says += say(
            " It is transposed: a kernel is what one input cell adds to the output "
            "around it. The weights are stored input channel first and shown output "
            "channel first."
        )
    return says


def script(facts: LensFacts) -> LensCode:
    """Write the weights as they are used, output channels first, and their comparison."""
    outputs, inputs, *taps = facts.values["kernels"]
    comments, shown = {"layer": ""}, _NORM
    if taps == [1, 1] and inputs > 1:
        shown = "kernels.reshape(1, *kernels.shape[:2])" + ".swapaxes(1, 2)" * (outputs > inputs)
    elif facts.chosen["show"] == "one input":
        comments["channel"], shown = "the input channel that is shown", "kernels[:, CHANNEL]"
    comments["threshold"] = "the smallest |cosine| of near-duplicates"
    functions = source_of(outputs_first, near_duplicates)
    return in_order(constants(facts, **comments), functions, _KERNELS.format(shown=shown)), {
        name: name for name in ("kernels", "shown", "norms", "pairs", "cosines")
    }


_NORM = "np.linalg.norm(kernels.astype(float), axis=1).astype(np.float32)  # at each tap"
_KERNELS = """
layer = model.get_submodule(LAYER)
kernels = outputs_first(layer.weight.detach(), layer.groups, layer.transposed)
shown = {shown}
flat = kernels.reshape(len(kernels), -1).astype(np.float64)
norms = np.linalg.norm(flat, axis=1)
pairs, cosines, _ = near_duplicates(flat, norms, THRESHOLD)"""


LENS = Lens(
    slug="kernels",
    title=mark("Kernels"),
    question=mark("What does a layer look for?"),
    sentence=mark(
        "What a conv layer has learned to look for: its weights, their sizes and their twins."
    ),
    group=SEES,
    run=run,
    script=script,
    parameters=(
        LayerChoice(default="first"),
        OneOf(
            name="show",
            label=mark("Show"),
            choices=(mark("one input"), mark("norm over inputs")),
            help=mark("The weights for one input channel, or all inputs taken together."),
        ),
        WholeNumber(
            name="channel",
            label=mark("Input channel"),
            matters_for=("show", (mark("one input"),)),
            help=mark("Whose weights are shown, counted within the kernel."),
            low=0,
            high=65_535,
            default=0,
        ),
        OneOf(
            name="sort",
            label=mark("Norms"),
            choices=(mark("channel"), mark("norm")),
            help=mark("The order of the bars."),
        ),
        RealNumber(
            name="threshold",
            label=mark("Near-duplicates from"),
            help=mark("The smallest |cosine| that two kernels need to count as near-duplicates."),
            low=0.0,
            high=1.0,
            default=0.9,
        ),
    ),
)
