"""The class scores without one channel of a layer, for every channel of it.

A channel is switched off by writing 0 at the layer's own output, each time that the layer runs.
Many channels go through the network at once: row i of the batch has channel cᵢ at 0. So the rows
must not depend on each other, which is checked on the way: two rows more have either half of the
channels at 0, whose scores are known from passes of their own. Where a batch gives anything else,
the next plainer way is taken, in the end one channel at a time.

Halves, since most of what a network takes over its batch is another number without one of them: the
largest value, say, lies in one half of the channels, and a row without that half shows it. Without
one channel, all rows but one have it.

How long it takes: mostly the part of the network behind the layer, once per channel. Where only the
plainer ways are left, it is a whole pass per channel.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from hookviz.capturing.layer_trace import input_trace
from hookviz.errors import ModelError
from hookviz.explaining.apart import are_near, rounding
from hookviz.explaining.scoring import class_scores
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import ProgressReporter, private_replica
from hookviz.hooking.purity import is_pure
from hookviz.hooking.rows import GrowingRows
from hookviz.types import LayerInfo, Model, ModelInput

_ROOM = 256 << 20  # bytes of activations that a batch may take
_MOST_ROWS = 128


class PassesWithout:
    """Passes with channels of one layer switched off, each on a replica of its own."""

    def __init__(self, model: Model, model_input: ModelInput, layer: LayerInfo) -> None:
        """Get ready for them."""
        self._model = model
        self._images = model_input.tensor
        self._survey = input_trace(model, model_input)
        self._layer = layer
        self._calls = {info.name: info.calls for info in self._survey.layers}
        self._done = 0  # channels

    def every_channel(self, before: Tensor, reporter: ProgressReporter) -> Tensor:
        """The scores without each channel, float64 ``(C, classes)``; `before` are those with all.

        First with one image up to the layer and a row per channel from there on, where anything
        from before the layer, such as a residual connection, is repeated. Then with a row per
        channel all the way. Then one by one, as for a network that takes one image alone.

        Args:
            before: float64, ``(classes,)``.
            reporter: told how much of this is done within its present step.

        Raises:
            ModelError: the network can't go on without a channel.
        """
        known = self._without_halves(before, reporter)
        if known is not None:
            for images, rows in ((1, self._rows(self._layer.name)), (None, self._rows())):
                scores = self._in_batches(images, rows, known, reporter)
                if scores is not None:
                    return scores
        self._done = 0
        count = self._layer.output_shape[0]
        return torch.cat([self._alone(channel, reporter) for channel in range(count)])

    def _without_halves(self, before: Tensor, reporter: ProgressReporter) -> "_Known | None":
        """What passes of their own give without either half of the channels; None if they fail."""
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
        largest = rounding(self._model.network, torch.cat([before[None], scores]))
        return _Known(halves, scores, largest)

    def _in_batches(
        self, images: int | None, rows: int, known: "_Known", reporter: ProgressReporter
    ) -> Tensor | None:
        """The scores without each channel, `rows` in a pass; None where rows are not apart.

        The first and the last batch have two rows more, whose scores are known.
        """
        count = self._layer.output_shape[0]
        scores: list[Tensor] = []
        self._done = 0
        if rows == 1 or not is_pure(self._model.network):
            return None  # a way that values decide may be another one for a batch
        for start in range(0, count, rows):
            channels = range(start, min(start + rows, count))
            listed: list[Sequence[int]] = [[channel] for channel in channels]
            if start == 0 or channels.stop == count:
                listed += known.halves
            try:
                found = self._scores(listed, images or len(listed), reporter)
            except ModelError as error:
                if reporter.was_ended_by(error):
                    raise
                return None  # one image alone does go through, as the halves did
            if len(listed) > len(channels) and not known.are(found[len(channels) :]):
                return None
            scores.append(found[: len(channels)])
            self._done += len(channels)
        return torch.cat(scores)

    def _alone(self, channel: int, reporter: ProgressReporter) -> Tensor:
        scores = self._scores([[channel]], 1, reporter)
        self._done += 1
        return scores

    def _rows(self, start: str | None = None) -> int:
        """How many rows there is room for, from the layer `start` on: four outputs at once."""
        names = list(self._survey.calls)
        sizes = [self._survey.nbytes[name] // self._survey.calls[name] for name in names]
        largest = max(sizes[names.index(start) if start else 0 :])
        return max(1, min(_MOST_ROWS, _ROOM // max(1, 4 * largest)))

    def _scores(
        self, without: Sequence[Sequence[int]], images: int, reporter: ProgressReporter
    ) -> Tensor:
        """The scores, float64 ``(N, classes)``, with the channels ``without[i]`` of row i at 0."""
        at_work, count = 0, len(without)

        def change(call: hooks.Call) -> Tensor | None:
            nonlocal at_work
            at_work += 1
            share = count * min(1.0, at_work / sum(self._calls.values()))
            reporter.within((self._done + share) / self._layer.output_shape[0])
            if call.layer != self._layer.name:
                return None
            output: Tensor = call.output
            if output.ndim == len(self._layer.output_shape):  # the network took the batch off
                output = output[None]
                if count > 1:
                    raise ValueError("there is no batch for more than one row")
            rows = output.expand(count, *output.shape[1:]).clone()
            for row, channels in zip(rows, without, strict=True):
                row[list(channels)] = 0
            return rows.reshape(call.output.shape) if count == 1 else rows

        batch = self._images.expand(images, *self._images.shape[1:])
        growing = GrowingRows() if images < count else nullcontext()
        with (
            private_replica(self._model) as replica,
            hooks.edit(replica, self._calls, change),
            growing,
        ):
            scores = class_scores(self._model, replica, batch, reporter, count=count)
        return scores.cpu().double()


@dataclass(frozen=True, eq=False, slots=True)
class _Known:
    """The scores of passes of their own, ``(2, classes)``, without either half of the channels."""

    halves: tuple[Sequence[int], Sequence[int]]
    scores: Tensor
    rounding: float

    def are(self, scores: Tensor) -> bool:
        """Whether a batch has given the same."""
        return are_near(self.scores, scores, self.rounding)
