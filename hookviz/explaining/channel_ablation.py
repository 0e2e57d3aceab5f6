"""Ablate a layer's channels one by one: the class scores without each, and how they change.

A channel is ablated by writing 0 at the layer's own output, each time that the layer runs; of a
linear layer in every token, those that stand for no cell included, such as a class token. Many
channels share a batch: row i of the batch has channel cᵢ at 0. So the rows must not depend on each
other, which is checked on the way: two rows more have either half of the channels at 0, whose
scores are known from passes of their own. Where a batch gives anything else, the next simpler
strategy is taken, in the end one channel at a time.

Halves, since most numbers that a network takes over its batch change without one of them: the
largest value, say, lies in one half of the channels, and a row without that half shows it. Without
one channel, all rows but one have it.

It takes about as long as the part of the network behind the layer, once per channel; with the
simpler strategies, a whole pass per channel.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from hookviz.capturing.layer_trace import input_trace
from hookviz.errors import ModelError
from hookviz.explaining.batch_independence import agree_within, batch_tolerance
from hookviz.explaining.scoring import class_scores
from hookviz.hooking import hooks
from hookviz.hooking.channels_last import faster_model, how, lay_out
from hookviz.hooking.forward_pass import ProgressReporter, private_replica
from hookviz.hooking.rows import GrowingRows
from hookviz.language.saying import say
from hookviz.types import (
    TOKENS,
    UNKNOWN,
    WINDOWS,
    Address,
    LayerInfo,
    Model,
    ModelInput,
    Progress,
    ignore,
)
from hookviz.wording import number

_MAX_BATCH_BYTES = 256 << 20  # of activations
_MAX_ROWS = 128
_MAX_WORK = 1e13  # multiply-adds: minutes on a few cores


class ChannelAblation:
    """Runs passes with channels of one layer ablated, each by itself."""

    def __init__(self, model: Model, model_input: ModelInput, layer: LayerInfo) -> None:
        self._model = self._passes = model  # `_passes` is what runs now
        self._images = model_input.tensor
        self._trace = input_trace(model, model_input)
        self._layer = layer
        self._axis = -len(layer.output_shape) if layer.kernel_size else -1  # of the channels
        self._calls = {info.name: info.calls for info in self._trace.layers}
        self._done = 0  # channels

    def scores_without_each(self, before: Tensor, reporter: ProgressReporter) -> Tensor:
        """Return the scores without each channel, float64 ``(C, classes)``.

        First with one image up to the layer and a row per channel from there on, where anything
        from before the layer, such as a residual connection, is repeated. Then with a row per
        channel all the way. Then one by one, as for a network that takes one image alone.

        Batches of a convolutional network run with channels last in memory, to rounding (see
        `hookviz.hooking.channels_last`); what runs one by one runs plainly.

        Args:
            before: the scores with all channels, float64 ``(classes,)``.
            reporter: called with the share done within its present step.

        Raises:
            ModelError: the network can't go on without a channel.
        """
        self._passes = faster_model(self._model, self._images)
        half_scores = self._without_halves(before, reporter)
        if half_scores is not None:
            for images, rows in ((1, self._max_rows(self._layer.name)), (None, self._max_rows())):
                scores = self._in_batches(images, rows, half_scores, reporter)
                if scores is not None:
                    return scores
        self._done = 0
        self._passes = self._model
        count = self._layer.output_shape[0]
        return torch.cat([self._one_by_one(channel, reporter) for channel in range(count)])

    @property
    def how(self) -> str:
        """How the scores of the last passes are rounded, in words; empty of plain passes."""
        return how(self._passes)

    def _without_halves(self, before: Tensor, reporter: ProgressReporter) -> "_HalfScores | None":
        """Score either half of the channels ablated in passes of their own; None if they fail."""
        count = self._layer.output_shape[0]
        if count == 1:
            return None
        halves = (range(count // 2), range(count // 2, count))
        try:
            scores = torch.cat([self._scores([half], 1, reporter) for half in halves])
        except ModelError as error:
            if reporter.was_ended_by(error):
                raise
            return None
        tolerance = batch_tolerance(self._model.network, torch.cat([before[None], scores]))
        return _HalfScores(halves, scores, tolerance)

    def _in_batches(
        self, images: int | None, rows: int, half_scores: "_HalfScores", reporter: ProgressReporter
    ) -> Tensor | None:
        """Ablate `rows` channels in each pass; None where the rows depend on each other.

        The first and the last batch have two rows more, whose scores are known.
        """
        count = self._layer.output_shape[0]
        scores: list[Tensor] = []
        self._done = 0
        if rows == 1 or not self._trace.is_static:
            return None  # code that branches on values may branch differently for a batch
        for start in range(0, count, rows):
            channels = range(start, min(start + rows, count))
            ablated: list[Sequence[int]] = [[channel] for channel in channels]
            if start == 0 or channels.stop == count:
                ablated += half_scores.halves
            try:
                batch = self._scores(ablated, images or len(ablated), reporter)
            except ModelError as error:
                if reporter.was_ended_by(error):
                    raise
                return None  # one image alone does go through, as the halves did
            if len(ablated) > len(channels) and not half_scores.agree(batch[len(channels) :]):
                return None
            scores.append(batch[: len(channels)])
            self._done += len(channels)
        return torch.cat(scores)

    def scores_without(self, channel: int, reporter: ProgressReporter) -> Tensor:
        """Return the scores without one channel, float64 ``(classes,)``.

        Raises:
            ModelError: the network can't go on without it.
        """
        return self._one_by_one(channel, reporter)[0]

    def _one_by_one(self, channel: int, reporter: ProgressReporter) -> Tensor:
        scores = self._scores([[channel]], 1, reporter)
        self._done += 1
        return scores

    def _max_rows(self, start: str | None = None) -> int:
        """Return how many rows fit in memory from the layer `start` on: four outputs at once."""
        names = list(self._trace.calls)
        sizes = [self._trace.nbytes[name] // self._trace.calls[name] for name in names]
        largest = max(sizes[names.index(start) if start else 0 :])
        return max(1, min(_MAX_ROWS, _MAX_BATCH_BYTES // max(1, 4 * largest)))

    def _scores(
        self, ablated: Sequence[Sequence[int]], images: int, reporter: ProgressReporter
    ) -> Tensor:
        """Score rows, float64 ``(N, classes)``, with the channels ``ablated[i]`` of row i at 0."""
        calls_done, count = 0, len(ablated)

        def ablate(call: hooks.Call) -> Tensor | None:
            nonlocal calls_done
            calls_done += 1
            share = count * min(1.0, calls_done / sum(self._calls.values()))
            reporter.within((self._done + share) / self._layer.output_shape[0])
            if call.layer != self._layer.name:
                return None
            rows = self._as_rows(call, count)
            for row, channels in zip(rows, ablated, strict=True):
                row.movedim(self._axis, 0)[list(channels)] = 0
            output = rows.reshape(-1, *call.output.shape[1:])
            return output if self._passes is self._model else lay_out(output)

        batch = self._images.expand(images, *self._images.shape[1:])
        if self._passes is not self._model:
            batch = lay_out(batch)
        growing = GrowingRows() if images < count else nullcontext()
        with (
            private_replica(self._passes) as replica,
            hooks.edit(replica, self._calls, ablate),
            growing,
        ):
            scores = class_scores(self._passes, replica, batch, reporter, count=count).values
        return scores.cpu().double()

    def _as_rows(self, call: hooks.Call, count: int) -> Tensor:
        """Copy what the layer put out as a row for each image, one of which is repeated."""
        output: Tensor = call.output
        if count == 1:
            return output.clone()[None]
        layout = self._trace.layouts.get(Address(call.layer, call.index), UNKNOWN)
        windows = prod(layout.windows) if layout.order == WINDOWS else 1
        unbatched = len(self._layer.output_shape) - (layout.order == TOKENS)
        if output.ndim == unbatched and layout.order != WINDOWS:  # the network took the batch off
            raise ValueError("there is no batch for more than one row")
        rows = output.reshape(-1, windows, *output.shape[1:])
        return rows.expand(count, *rows.shape[1:]).clone()


@dataclass(frozen=True, eq=False, slots=True)
class _HalfScores:
    """Scores without either half of the channels, ``(2, classes)``, from passes of their own."""

    halves: tuple[Sequence[int], Sequence[int]]
    scores: Tensor
    tolerance: float

    def agree(self, scores: Tensor) -> bool:
        """Return whether a batch gave the same scores, within rounding."""
        return agree_within(self.scores, scores, self.tolerance)


def channel_effects(
    model: Model, model_input: ModelInput, layers: Sequence[str], progress: Progress = ignore
) -> dict[str, Tensor]:
    """Measure how much the class scores change without each channel, by layer.

    ``‖scores(channel c at 0) − scores‖₂``, float64 ``(C,)`` on the CPU. The channel is ablated at
    the layer's own output, before any batch norm.

    Args:
        model: the model.
        model_input: the image whose scores are compared.
        layers: conv layers, or linear layers that put out maps, by name.
        progress: called with the share done; what it raises ends the run.

    Raises:
        ModelError: it would take more than 10¹³ multiply-adds, or the network can't go on without
            a channel or puts out no class scores.
    """
    trace = input_trace(model, model_input)
    infos = [info for info in trace.layers if info.name in set(layers)]
    work = sum(
        info.output_shape[0]
        * sum(later.multiply_adds * later.calls for later in trace.layers[info.index :])
        for info in infos
    )
    channels = sum(info.output_shape[0] for info in infos)
    if work > _MAX_WORK:
        raise ModelError(
            say(
                "To switch {channels:,} channels of {model} off one by one takes {multiply_adds} "
                "multiply-adds, more than {limit}. Choose one layer alone, a smaller "
                "input, or another method.",
                channels=channels,
                model=model.title,
                multiply_adds=number(work),
                limit=number(_MAX_WORK),
            )
        )
    effects, done, highest = {}, 0, 0.0

    def report(share: float) -> None:
        nonlocal highest  # a simpler strategy starts again from 0
        highest = max(highest, (done + share * count) / channels)
        progress(highest)

    with private_replica(model) as replica:
        before = class_scores(model, replica, model_input.tensor).values[0].cpu().double()
    for info in infos:
        count = info.output_shape[0]
        after = ChannelAblation(model, model_input, info).scores_without_each(
            before, ProgressReporter(report)
        )
        effects[info.name] = (after - before).norm(dim=1)
        done += count
    return effects
