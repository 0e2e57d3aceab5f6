"""Patch activations of one image into a pass over another, and measure what the target does.

Activation patching (Vig et al., "Causal Mediation Analysis for Interpreting Neural NLP", 2020; Meng
et al., "Locating and Editing Factual Associations in GPT", 2022):

1. Run the clean image and the corrupted one, and keep what the layers put out for each.
2. Run the corrupted image with one part of one layer as it was for the clean image: the whole
   layer, a channel, a cell or an attention head. Every call of the layer gets its own.
3. The part's share is (patched − corrupted) / (clean − corrupted), of the target.

Attribution patching (Nanda, "Attribution Patching", 2023) estimates all shares from one backward
pass: the gradient of the target at the corrupted image's activation, times what the part changes.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz import markup
from hookviz.capturing.inputs import prepare_input
from hookviz.capturing.layer_trace import LayerTrace, input_trace
from hookviz.capturing.wanted_layers import check_can_intervene, layers_by_selector, wanted_layers
from hookviz.drawing.comparison_pages import heads_figure, patching_figure
from hookviz.drawing.figures import figure_file
from hookviz.errors import ModelError, SettingError, one_of
from hookviz.explaining.attribution.batched_passes import rising
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.explaining.patching.part_patching import PARTS, HeadPatching, PartPatching
from hookviz.explaining.scores.scoring import class_number
from hookviz.hooking.device import with_numbers
from hookviz.hooking.function_calls import is_function, nearest_module, no_module
from hookviz.hooking.selection import Layers
from hookviz.language.saying import say
from hookviz.models.wrapping import as_model
from hookviz.outputs.answer import NUMBER, Output
from hookviz.types import LayerInfo, Model, ModelInput, Progress, ignore
from hookviz.wording import number, times

if TYPE_CHECKING:  # drawing alone knows matplotlib
    from matplotlib.figure import Figure

Shares = NDArray[np.float64]
_MOST_ROWS = 30  # of a notebook's table


class PatchRow(NamedTuple):
    """One part of one layer: its share, and the estimate by the gradient.

    Attributes:
        layer: the layer's name.
        part: ``(channel,)``, ``(head,)``, a cell as ``(row, column)``, or ``()`` for the layer.
        share: of the target's difference, that the part brings back.
        direct: the same, as the gradient estimates it.
    """

    layer: str
    part: tuple[int, ...]
    share: float
    direct: float


@dataclass(frozen=True, eq=False)
class Patching:
    """Shares of a target's difference between two images, that parts of a network bring back.

    1 is the target of the clean image, 0 that of the corrupted one; a part can bring back more than
    all of it, or less than nothing.

    Attributes:
        model: the network's title.
        target: what was measured, in words.
        by: ``"layer"``, ``"channel"``, ``"cell"`` or ``"head"``.
        clean: the target for the clean image.
        corrupted: the target for the corrupted image.
        shares: by layer, in order of execution; float64 ``()`` of layers, ``(C,)`` of channels,
            ``(H, W)`` of cells, ``(heads,)`` of heads.
        direct: the same by the gradient, in one pass for all parts (attribution patching); NaN
            where nothing can be gone back through.
        note: why numbers of `direct` are NaN; empty where none is.
    """

    model: str
    target: str
    by: str
    clean: float
    corrupted: float
    shares: Mapping[str, Shares] = field(repr=False)
    direct: Mapping[str, Shares] = field(repr=False)
    note: str = ""

    def table(self, top: int | None = None) -> tuple[PatchRow, ...]:
        """Return a row for each part, in order of execution; or the `top` of the largest share."""
        rows = tuple(self._rows())
        return rows if top is None else tuple(sorted(rows, key=lambda row: -row.share)[:top])

    def _rows(self) -> Iterator[PatchRow]:
        for layer, shares in self.shares.items():
            for part in np.ndindex(shares.shape):
                yield PatchRow(layer, part, float(shares[part]), float(self.direct[layer][part]))

    def figure(self, *, title: str | None = None) -> "Figure":
        """Draw the shares: bars of layers or channels, a map of cells or of all heads."""
        own = say(
            "{model}: {target}, from {corrupted} to {clean}",
            target=self.target,
            model=self.model,
            corrupted=number(self.corrupted),
            clean=number(self.clean),
        )
        heading = own if title is None else title
        if self.by == "head":
            return heads_figure(self.shares, title=heading)
        return patching_figure(self.shares, self.direct, title=heading)

    def figure_bytes(self, format: str = "png", dpi: int = 150) -> bytes:  # noqa: A002 - as savefig
        """Return the `figure` as a file: ``"png"``, ``"pdf"`` or ``"svg"``.

        Only one thread draws at a time.

        Raises:
            SettingError: `format` is not one of these.
        """
        return figure_file(self.figure, format, dpi=dpi)

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the picture, and the parts of the largest share."""
        html = markup.image(self.figure_bytes(dpi=80), say("Share that each part brings back"))
        rows = [
            (row.layer, ", ".join(map(str, row.part)), number(row.share), number(row.direct))
            for row in self.table(_MOST_ROWS)
        ]
        head = (say("layer"), say("part"), say("share"), say("by gradient"))
        table = markup.table(head, rows)
        return html + markup.details(say("The largest shares"), table, is_open=False)


_SAME = 1e-6  # share of a target below which a difference is rounding


@with_numbers
def patch(
    model: Model | nn.Module,
    clean: Any,
    corrupted: Any,
    layers: Layers = None,
    *,
    target: int | str | Callable[[Any], Tensor] | None = None,
    by: str = "layer",
    size: int | None = None,
    whole: bool = False,
    progress: Progress = ignore,
) -> Patching:
    """Measure which parts of a network bring a target back, activation by activation.

    Each is taken from a pass over the clean image, and put into a pass over the corrupted one
    (activation patching). Beside it stands what the gradient estimates (attribution patching).

    Args:
        model: from `load_model` or `wrap`, or a module of one's own.
        clean: an image that the target is high for, anything that `capture` takes.
        corrupted: one that it is low for, such as the same one with a part hidden.
        layers: layers or blocks as `capture` takes them; None for the convolutions, or a
            transformer's blocks. Of a pattern with ``by="head"``, those that attend.
        target: number or name of a class, whose score it is, before any softmax; or a function of
            what the network puts out for one image; the clean image's likeliest class by default.
        by: ``"layer"``; ``"channel"``, of all cells and tokens; ``"cell"``, of all channels,
            where tokens that stand for no cell, such as a class token, are left out; or ``"head"``,
            each attention head in `layers`, by default of the whole network.
        size: side of the input in pixels, in place of the model's own.
        whole: take in the whole images instead of their centre crops.
        progress: called with the share done; what it raises ends the run.

    Raises:
        UnknownLayerError: the model lacks that layer.
        SettingError: the model lacks that class, `by` means nothing, the target is the same for
            both images, their inputs have two shapes, or a layer has no heads.
        ModelError: a layer has no channels or cells that anybody knows, the network puts out no
            scores, or it would take more than 10¹³ multiply-adds.

    >>> model = hookviz.load_model("shapesnet")
    >>> star, heart = "assets/samples/star.jpg", "assets/samples/heart.jpg"
    >>> found = hookviz.patch(model, star, heart, ["stem.first.conv", "stage3.first.conv"])
    >>> [f"{row.layer}: {row.share:.0%}" for row in found.table()]
    ['stem.first.conv: 100%', 'stage3.first.conv: 93%']
    """
    model = as_model(model)
    if callable(target):
        model = replace(model, output=Output(NUMBER, target), categories=(say("the target"),))
        target = 0
    one, other = (
        prepare_input(model, image, size=size, whole=whole) for image in (clean, corrupted)
    )
    return patch_inputs(model, one, other, layers, target=target, by=by, progress=progress)


def patch_inputs(
    model: Model,
    clean: ModelInput,
    corrupted: ModelInput,
    layers: Layers = None,
    *,
    target: int | str | None,
    by: str,
    progress: Progress,
) -> Patching:
    """Measure as `patch` does, between inputs that are made already; with its errors."""
    one_of("by", by, (*PARTS, "head"))
    _check_shapes(clean, corrupted)
    images, reporter = (clean, corrupted), rising(progress)
    trace = input_trace(model, clean)
    if by == "head":
        groups = layers_by_selector(model, trace, layers) if layers is not None else [("",)]
        run: HeadPatching | PartPatching = HeadPatching(model, images, groups)
    else:
        run = PartPatching(model, images, _patched_layers(model, trace, layers), by)
    index = _class_of(model, target, run.scores)
    high, low = float(run.scores[index]), float(run.before[index])
    _check_differs(high, low, model.title)
    direct, note = run.direct_effects(index, reporter)
    changes = run.changes(index, reporter)
    shares, estimates = (
        {layer: (each / (high - low)).numpy() for layer, each in found.items()}
        for found in (changes, direct)
    )
    target_name = AttributionTarget(index).describe(model)
    return Patching(model.title, target_name, by, high, low, shares, estimates, note)


def _patched_layers(model: Model, trace: LayerTrace, layers: Layers) -> tuple[LayerInfo, ...]:
    """Return the layers and blocks to patch, in order of execution."""
    if layers is None:
        names = {info.name for info in trace.usual}
    else:
        names = set(wanted_layers(model, trace, layers))
    for name in sorted(names):
        if is_function(name):
            raise no_module(name, model.title, nearest_module(name))
        check_can_intervene(model, trace, name)
    infos = tuple(info for info in trace.every if info.name in names)
    silent = names - {info.name for info in infos}
    if silent or not infos:
        raise ModelError(
            say(
                "{layer} of {model} puts out no tensor of the image, so nothing can be patched "
                "there. Choose another layer, such as {other!r}.",
                layer=repr(min(silent, default=model.title)),
                model=model.title,
                other=trace.every[0].name,
            )
        )
    return infos


def _class_of(model: Model, target: int | str | None, scores: Tensor) -> int:
    if target is None:
        return int(scores.argmax())
    return class_number(target, model.categories, len(scores), model.title)


def _check_shapes(clean: ModelInput, corrupted: ModelInput) -> None:
    one, other = clean.tensor.shape[1:], corrupted.tensor.shape[1:]
    if one != other:
        raise SettingError(
            say(
                "The clean input has the shape {shape} and the corrupted one {other}: activations "
                "can be patched between inputs of one shape. size= gives both images one.",
                shape=times(one),
                other=times(other),
            )
        )


def _check_differs(clean: float, corrupted: float, title: str) -> None:
    """Refuse a target that both images give the same value."""
    if not abs(clean - corrupted) > _SAME * max(abs(clean), abs(corrupted)):
        raise SettingError(
            say(
                "The target is {value} for both images in {model}, so there is no difference that "
                "a part could bring back. Take another image, or another target.",
                value=number(clean),
                model=title,
            )
        )
