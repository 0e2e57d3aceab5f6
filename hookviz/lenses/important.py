"""Which single channel of a layer matters most to a class: each one switched off by itself.

Leave-one-out occlusion of units, as in Zhou et al., "Revisiting the Importance of Individual Units
in CNNs via Ablation" (2018). Many channels go through the network at once: row i of the batch has
channel cᵢ at 0. So the rows must not depend on each other, which is checked on the way: the first
and the last channel are switched off alone as well, and where a batch gives anything else, the
next plainer way is taken, in the end one channel at a time.

How long it takes: mostly the part of the network behind the layer, once per channel. Where only the
plainer ways are left, it is a whole pass per channel.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz.drawing.grid import Grid, make_grid
from hookviz.drawing.layout import lay_out
from hookviz.drawing.panels import ChartPanel, GridPanel, Panel, TablePanel, TextPanel
from hookviz.drawing.scales import quantise
from hookviz.errors import HookVizError, ModelError
from hookviz.explaining.scoring import class_scores
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import Telling, device_and_dtype, private_replica
from hookviz.hooking.rows import GrowingRows
from hookviz.lenses.contract.lens import Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import ClassChoice, LayerChoice
from hookviz.types import LayerInfo
from hookviz.wording import number

Floats = NDArray[np.float64]
_ROOM = 256 << 20  # bytes of activations that a batch may take
_MOST_ROWS = 128
_TOP = 10
_HEAD = ("channel", "score without it", "change of score", "probability without it (%)", "points")


def run(subject: Subject, *, layer: str, target: int) -> LensOutput:
    """The change in the class's score and probability without each channel.

    A channel is switched off by writing 0 at the convolution's own output, each time that the layer
    runs: Δc = score(channel c at 0) − score. A negative Δ says that the channel speaks for the
    class. Values: ``logit_change`` and ``probability_change`` ``(C,)``; ``logit`` and
    ``probability`` of the untouched pass.

    Raises:
        ModelError: the network can't go on without a channel, or has no finite class scores.
    """
    info = next(conv for conv in subject.convs if conv.name == layer)
    whole = subject.capture(layer, logits=True)
    maps = whole[layer].values.numpy()
    if maps.ndim != 3:
        raise HookVizError(
            f"{layer} of {subject.model.title} puts out {maps.shape}, and this lens draws channels "
            "that are maps, (C, H, W): choose a layer with a two-dimensional kernel."
        )
    assert whole.logits is not None
    before = whole.logits.double()
    if not bool(torch.isfinite(before).all()):
        raise ModelError(
            f"{subject.model.title} gives scores of NaN or infinity for this image, so nothing can "
            "be told from how they change. The lens health says in which layer they begin."
        )
    with private_replica(subject.model) as replica:
        after = _Runner(subject, replica, info).every_channel(before)
        least = _rounding(replica, before)
    changes = _Changes(
        scores=(after[:, target] - before[target]).numpy(),
        chances=(after.softmax(1)[:, target] - before.softmax(0)[target]).numpy(),
        logit=float(before[target]),
        chance=float(before.softmax(0)[target]),
        least=least,
        flips=int((after.argmax(1) != before.argmax()).sum()),
    )
    values = {
        "logit_change": changes.scores,
        "probability_change": changes.chances,
        "logit": np.array(changes.logit),
        "probability": np.array(changes.chance),
    }
    return _panels(subject, info, target, maps, changes), values


@dataclass(frozen=True, eq=False, slots=True)
class _Changes:
    """Per channel, ``(C,)``, what the score and the probability change by; and both before.

    Changes of the score up to `least` are rounding.
    """

    scores: Floats
    chances: Floats
    logit: float
    chance: float
    least: float
    flips: int


class _Runner:
    """Passes with channels of one layer switched off."""

    def __init__(self, subject: Subject, network: nn.Module, layer: LayerInfo) -> None:
        self._subject = subject
        self._network = network
        self._layer = layer
        self._calls = {info.name: info.calls for info in subject.survey.layers}
        self._done = 0  # channels
        self._telling = Telling(subject.progress)

    def every_channel(self, before: Tensor) -> Tensor:
        """The scores without each channel, float64 ``(C, classes)``; `before` are those with all.

        First with one image up to the layer and a row per channel from there on, where anything
        from before the layer, such as a residual connection, is repeated. Then with a row per
        channel all the way. Then one by one, as for a network that takes one image alone.
        """
        count = self._layer.output_shape[0]
        ends = [self._scores([channel], 1) for channel in (0, count - 1)]
        alike = partial(
            torch.allclose, rtol=0, atol=_rounding(self._network, before), equal_nan=True
        )
        for images, rows in ((1, self._rows(self._layer.name)), (None, self._rows())):
            scores: list[Tensor] = []
            self._done = 0
            try:
                for start in range(0, count, rows):
                    channels = range(start, min(start + rows, count))
                    scores.append(self._scores(channels, images or len(channels)))
                    self._done += len(channels)
                    if not alike(scores[0][0], ends[0][0]):
                        break
            except ModelError:
                continue  # one image alone does go through, as `ends` did
            if self._done == count and alike(scores[-1][-1], ends[1][0]):
                return torch.cat(scores)
        self._done = 0
        return torch.cat([self._alone(channel) for channel in range(count)])

    def _alone(self, channel: int) -> Tensor:
        scores = self._scores([channel], 1)
        self._done += 1
        return scores

    def _rows(self, start: str | None = None) -> int:
        """How many rows there is room for, from the layer `start` on: four outputs at once."""
        survey = self._subject.survey
        names = list(survey.calls)
        sizes = [survey.nbytes[name] // survey.calls[name] for name in names]
        largest = max(sizes[names.index(start) if start else 0 :])
        return max(1, min(_MOST_ROWS, _ROOM // max(1, 4 * largest)))

    def _scores(self, channels: Sequence[int], images: int) -> Tensor:
        """The scores, float64 ``(N, classes)``, with channel ``channels[i]`` of row i at 0."""
        at_work = 0

        def change(call: hooks.Call) -> Tensor | None:
            nonlocal at_work
            at_work += 1
            share = len(channels) * min(1.0, at_work / sum(self._calls.values()))
            self._telling.share((self._done + share) / self._layer.output_shape[0])
            if call.layer != self._layer.name:
                return None
            output: Tensor = call.output
            if output.ndim == len(self._layer.output_shape):  # the network took the batch off
                output = output[None]
                if len(channels) > 1:
                    raise ValueError("there is no batch for more than one row")
            rows = output.expand(len(channels), *output.shape[1:]).clone()
            rows[range(len(channels)), channels] = 0
            return rows.reshape(call.output.shape) if len(channels) == 1 else rows

        batch = self._subject.model_input.tensor.expand(images, *self._subject.shape)
        growing = GrowingRows() if images < len(channels) else nullcontext()
        with hooks.edit(self._network, self._calls, change), growing:
            scores = class_scores(
                self._subject.model, self._network, batch, self._telling, count=len(channels)
            )
        return scores.cpu().double()


def _rounding(network: nn.Module, scores: Tensor) -> float:
    """Below this, scores of two passes differ by rounding alone, which no two batches share."""
    epsilon = torch.finfo(device_and_dtype(network)[1]).eps
    return min(256 * epsilon, 0.02) * float(scores.abs().max())


def _panels(
    subject: Subject,
    info: LayerInfo,
    target: int,
    maps: NDArray[np.float32],
    changes: _Changes,
) -> tuple[Panel, ...]:
    label = subject.label(target)
    scores = changes.scores
    ranked = np.argsort(scores, kind="stable")
    falling = [int(channel) for channel in ranked if scores[channel] < -changes.least][:_TOP]
    rising = [int(channel) for channel in ranked if scores[channel] > changes.least][-_TOP:]
    listed = falling + rising
    if not listed:
        says = f"No channel of {info.name} alone moves the score of {label} by more than rounding."
        return (TextPanel(says, "note"),)
    most = max(listed, key=lambda channel: abs(scores[channel]))
    says = (
        f"Of the {len(scores):,} channels of {info.name}, channel {most} matters most to {label}: "
        f"without it the score goes from {number(changes.logit)} to "
        f"{number(changes.logit + scores[most])} and the probability from "
        f"{number(100 * changes.chance)} % to "
        f"{number(100 * (changes.chance + changes.chances[most]))} %. "
        f"{int((scores < -changes.least).sum()):,} channels speak for {label}, "
        f"{int((scores > changes.least).sum()):,} against, and {changes.flips or 'none'} alone "
        f"change{'' if changes.flips > 1 else 's'} the prediction."
    )
    chart = ChartPanel(
        f"Score of {label} without one channel",
        tuple(map(str, listed)),
        {"change": scores[listed]},
        unit="change of score",
        caption="By channel. Below 0: the channel speaks for the class.",
        layer=info.name,
    )
    rows = tuple(
        (
            channel,
            number(changes.logit + scores[channel]),
            number(scores[channel]),
            number(100 * (changes.chance + changes.chances[channel])),
            number(100 * changes.chances[channel]),
        )
        for channel in listed
    )
    table = TablePanel(f"The {_TOP} that matter most, either way", _HEAD, rows)
    shown = sorted(listed, key=lambda channel: -abs(scores[channel]))[:12]
    grid = GridPanel(
        "What these channels put out",
        _some(make_grid(maps, scale="symmetric", title=info.name), maps, shown),
        f"Largest change first: {', '.join(map(str, shown))}.",
        layer=info.name,
    )
    return TextPanel(says), chart, grid, table


def _some(grid: Grid, maps: NDArray[np.float32], channels: list[int]) -> Grid:
    """Some channels of a grid in the order given, in the whole layer's colours."""
    levels = quantise(maps[channels], grid.limits.low[channels], grid.limits.high[channels])
    levels.flags.writeable = False
    return replace(
        grid,
        order=np.array(channels, np.intp),
        geometry=lay_out(len(channels), *maps.shape[1:]),
        levels=levels,
    )


LENS = Lens(
    slug="channels-that-matter",
    title="Channels that matter",
    question="Which channels does it need?",
    sentence="Which single channel of a layer a class needs most: each is switched off by itself.",
    run=run,
    parameters=(LayerChoice(), ClassChoice()),
)
