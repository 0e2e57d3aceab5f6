"""A conv layer's weights as pictures: its kernels, how large they are, and which are alike.

Kernels are compared by the cosine of the angle between them, ``⟨a, b⟩ / (‖a‖ · ‖b‖)``: 1 for the
same kernel at any strength, −1 for its opposite. First layers of trained networks hold many
opposite pairs (Shang et al., "Understanding and Improving Convolutional Neural Networks via
Concatenated Rectified Linear Units", ICML 2016, section 2.1).

Over 300 lines: its sentences for people stand whole, with a line for each fact.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.drawing.grid import make_grid
from hookviz.drawing.layout import lay_out, mosaic
from hookviz.drawing.panels import ChartPanel, GridPanel, ImagePanel, Panel, TablePanel, TextPanel
from hookviz.errors import SettingError
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import private_replica
from hookviz.hooking.precision import device_and_dtype
from hookviz.hooking.torch_functions import EveryFunction
from hookviz.language.saying import mark, say, say_count
from hookviz.lenses.contract.lens import Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import LayerChoice, OneOf, RealNumber, WholeNumber
from hookviz.types import LayerInfo, Pixels, Progress
from hookviz.wording import number

_MOST_PAIRS = 30  # rows that the table has at most
_ROWS = 512  # kernels compared with all others at a time
_CONVOLUTIONS = frozenset(f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3))

Kernels = NDArray[np.float32]


def run(
    subject: Subject, *, layer: str, show: str, channel: int, sort: str, threshold: float
) -> LensOutput:
    """The kernels as a grid, their norms, and the pairs that point nearly the same way.

    The weights are the ones that the layer hands to torch's convolution, weight norm and the like
    included, as ``(output channels, inputs per kernel, taps down, taps across)`` whatever the
    layer's kind. Norms are ``‖w‖₂ = √Σ w²`` over all of a kernel; cosines as in this file's head.

    Raises:
        SettingError: no kernel of the layer has that many input channels.
    """
    info = next(conv for conv in subject.convs if conv.name == layer)
    kernels = _kernels(subject, info)
    inputs = kernels.shape[1]
    if show == "one input" and channel >= inputs:
        raise SettingError(
            say_count(
                "channel={channel}: a kernel of {layer} has {input_count} input channel, 0 to "
                "{last}.",
                "channel={channel}: a kernel of {layer} has {input_count} input channels, 0 to "
                "{last}.",
                inputs,
                channel=channel,
                layer=layer,
                input_count=inputs,
                last=inputs - 1,
            )
        )
    flat = kernels.reshape(len(kernels), -1).astype(np.float64)
    norms = np.sqrt(np.square(flat).sum(1))
    twins = _twins(flat, norms, threshold, subject.progress)
    shown, grid = _grid(kernels, show, channel)
    panels: list[Panel] = [TextPanel(_says(info, kernels)), grid]
    if inputs == 3 and info.groups == 1:
        panels.insert(1, _in_colour(kernels))
    panels.append(_chart(norms, sort))
    if twins.count and len(shown) == len(kernels):
        panels.append(_side_by_side(shown, twins, grid.grid.limits.scale))
    panels.append(_pairs(twins, norms, threshold, info))
    values = {"kernels": kernels, "shown": shown, "norms": norms}
    return tuple(panels), {**values, "pairs": twins.pairs, "cosines": twins.cosines}


def _kernels(subject: Subject, info: LayerInfo) -> Kernels:
    """A layer's weights as used, float32, ``(outputs, inputs / groups, taps down, across)``."""
    with private_replica(subject.model) as replica:
        module = replica.get_submodule(info.name)
        assert isinstance(module.weight, Tensor)
        watch = _Weight()
        device, dtype = device_and_dtype(replica)
        try:
            with watch:  # some layers make their weights anew in every call: ask for one call
                module(torch.zeros(1, *info.input_shape, device=device, dtype=dtype))
        except (hooks.StopForward, Exception):  # noqa: BLE001, S110 - then as it is stored
            pass
        used = module.weight if watch.weight is None else watch.weight
        weight = used.detach().to("cpu", torch.float32, copy=True)
    if module.transposed:  # (inputs, outputs / groups, …): within each group, outputs first
        grouped = weight.reshape(info.groups, -1, *weight.shape[1:])
        weight = grouped.transpose(1, 2).flatten(0, 1)
    return weight.reshape(*weight.shape[:2], -1, weight.shape[-1]).contiguous().numpy()


class _Weight(EveryFunction):
    """Ends a layer's call where torch's convolution would start, and keeps its weights."""

    def __init__(self) -> None:
        super().__init__()
        self.weight: Tensor | None = None

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """What `func` gives, where it is no convolution."""
        if getattr(func, "__name__", "") in _CONVOLUTIONS:
            self.weight = kwargs["weight"] if "weight" in kwargs else args[1]
            raise hooks.StopForward
        return func(*args, **kwargs)


def _grid(kernels: Kernels, show: str, channel: int) -> tuple[NDArray[np.float32], GridPanel]:
    """What is drawn, ``(maps, rows, columns)``, and its panel."""
    outputs, inputs, tall, wide = kernels.shape
    if tall * wide == 1 and inputs > 1:
        matrix = kernels.reshape(1, outputs, inputs)
        row, column = "output", "input"
        if outputs > inputs:  # the longer side lies across
            matrix, row, column = np.ascontiguousarray(matrix.swapaxes(1, 2)), column, row
        title = say(
            "Weights as a matrix: a row per {row} channel, a column per {column} channel",
            row=row,
            column=column,
        )
        return matrix, GridPanel(title, make_grid(matrix, scale="symmetric", title=title))
    if show == "norm over inputs":
        norms = np.sqrt(np.square(kernels.astype(np.float64)).sum(1)).astype(np.float32)
        title = say("Norm over the input channels at each tap, a tile per output channel")
        return norms, GridPanel(title, make_grid(norms, title=title))
    slices = np.ascontiguousarray(kernels[:, channel])
    where = (
        say("for input channel {channel}", channel=channel)
        if inputs > 1
        else say("for its one input channel")
    )
    title = say("Kernels {inputs}, a tile per output channel", inputs=where)
    return slices, GridPanel(title, make_grid(slices, scale="symmetric", title=title))


def _in_colour(kernels: Kernels) -> ImagePanel:
    """The kernels with their three input channels as red, green and blue; mid-grey is zero."""
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


@dataclass(frozen=True, eq=False, slots=True)
class _Twins:
    """The closest pairs of kernels, ``(P, 2)``, their cosines, ``(P,)``, and how many there are.

    At least the closest pair is given, if there are two kernels that are not zero.
    """

    pairs: NDArray[np.int64]
    cosines: NDArray[np.float64]
    count: int


def _twins(
    flat: NDArray[np.float64], norms: NDArray[np.float64], threshold: float, progress: Progress
) -> _Twins:
    """The pairs of kernels, rows of `flat`, whose |cosine| reaches the threshold."""
    live = np.flatnonzero(norms > 0) if flat.shape[1] > 1 else np.empty(0, np.intp)
    units = flat[live] / norms[live, None]
    pairs, closest, count = np.empty((0, 2), np.int64), np.empty(0), 0
    for start in range(0, len(live), _ROWS):
        progress(start / len(live))
        cosines = np.clip(units[start : start + _ROWS] @ units.T, -1, 1)
        sizes = np.abs(cosines)
        sizes[np.tril_indices(len(sizes), start, len(live))] = -1  # each pair once
        count += int((sizes >= threshold).sum())
        best = np.argsort(-sizes, axis=None, kind="stable")[:_MOST_PAIRS]
        rows, columns = np.unravel_index(best[sizes.flat[best] >= 0], sizes.shape)
        pairs = np.concatenate([pairs, live[np.stack([rows + start, columns], 1)]])
        closest = np.concatenate([closest, cosines[rows, columns]])
    order = np.argsort(-np.abs(closest), kind="stable")[: max(1, min(_MOST_PAIRS, count))]
    return _Twins(pairs[order], closest[order], count)


def _side_by_side(shown: Kernels, twins: _Twins, scale: str) -> GridPanel:
    """Each pair as one tile: the kernel, and to its right its twin."""
    tiles = np.concatenate([shown[twins.pairs[:, which]] for which in (0, 1)], axis=2)
    title = say("Near-duplicates side by side")
    return GridPanel(
        title,
        make_grid(tiles, scale=scale, title=title, width=900),
        say(
            "A tile's left half is a kernel and its right half the twin, in the order of the table."
        ),
    )


def _pairs(
    twins: _Twins, norms: NDArray[np.float64], threshold: float, info: LayerInfo
) -> TablePanel | TextPanel:
    if not len(twins.pairs):
        return TextPanel(say("No two kernels of this layer have a shape to compare."), "note")
    if not twins.count:
        first, second = twins.pairs[0].tolist()
        return TextPanel(
            say(
                "No two kernels are near-duplicates: the closest, {channel} and {twin}, have "
                "a cosine similarity of {cosine}.",
                channel=first,
                twin=second,
                cosine=number(float(twins.cosines[0])),
            )
        )
    rows = tuple(
        (a, b, round(float(cosine), 4), number(norms[a]), number(norms[b]))
        for (a, b), cosine in zip(twins.pairs.tolist(), twins.cosines, strict=True)
    )
    more = say(", the closest {count} of them", count=len(rows)) if len(rows) < twins.count else ""
    apart = say(" Kernels of different groups look at different inputs.") if info.groups > 1 else ""
    return TablePanel(
        (
            say_count(
                "Near-duplicates: {count:,} pair of kernels",
                "Near-duplicates: {count:,} pairs of kernels",
                max(1, twins.count),
                count=twins.count,
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


def _says(info: LayerInfo, kernels: Kernels) -> str:
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


LENS = Lens(
    slug="kernels",
    title=mark("Kernels"),
    question=mark("What does a layer look for?"),
    sentence=mark(
        "What a conv layer has learned to look for: its weights, their sizes and their twins."
    ),
    run=run,
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
