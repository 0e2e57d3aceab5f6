"""The class scores without one channel of a layer, for every channel of it.

A channel is switched off by writing 0 at the layer's own output, each time that the layer runs.
Many channels go through the network at once: row i of the batch has channel cᵢ at 0. So the rows
must not depend on each other, which is checked on the way: the first and the last channel are
switched off alone as well, and where a batch gives anything else, the next plainer way is taken,
in the end one channel at a time.

How long it takes: mostly the part of the network behind the layer, once per channel. Where only the
plainer ways are left, it is a whole pass per channel.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial

import torch
from torch import Tensor, nn

from hookviz.capturing.survey import survey_input
from hookviz.errors import ModelError
from hookviz.explaining.scoring import class_scores
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import Telling, device_and_dtype
from hookviz.hooking.rows import GrowingRows
from hookviz.types import LayerInfo, Model, ModelInput

_ROOM = 256 << 20  # bytes of activations that a batch may take
_MOST_ROWS = 128


class PassesWithout:
    """Passes with channels of one layer switched off."""

    def __init__(
        self, model: Model, model_input: ModelInput, network: nn.Module, layer: LayerInfo
    ) -> None:
        """Make them with `network`, a private replica of the model's."""
        self._model = model
        self._images = model_input.tensor
        self._survey = survey_input(model, model_input)
        self._network = network
        self._layer = layer
        self._calls = {info.name: info.calls for info in self._survey.layers}
        self._done = 0  # channels

    def every_channel(self, before: Tensor, telling: Telling) -> Tensor:
        """The scores without each channel, float64 ``(C, classes)``; `before` are those with all.

        First with one image up to the layer and a row per channel from there on, where anything
        from before the layer, such as a residual connection, is repeated. Then with a row per
        channel all the way. Then one by one, as for a network that takes one image alone.

        Args:
            before: float64, ``(classes,)``.
            telling: told how much of this is done within its present step.

        Raises:
            ModelError: the network can't go on without a channel.
        """
        count = self._layer.output_shape[0]
        ends = [self._scores([channel], 1, telling) for channel in (0, count - 1)]
        alike = partial(
            torch.allclose, rtol=0, atol=rounding(self._network, before), equal_nan=True
        )
        for images, rows in ((1, self._rows(self._layer.name)), (None, self._rows())):
            scores: list[Tensor] = []
            self._done = 0
            try:
                for start in range(0, count, rows):
                    channels = range(start, min(start + rows, count))
                    scores.append(self._scores(channels, images or len(channels), telling))
                    self._done += len(channels)
                    if not alike(scores[0][0], ends[0][0]):
                        break
            except ModelError:
                continue  # one image alone does go through, as `ends` did
            if self._done == count and alike(scores[-1][-1], ends[1][0]):
                return torch.cat(scores)
        self._done = 0
        return torch.cat([self._alone(channel, telling) for channel in range(count)])

    def _alone(self, channel: int, telling: Telling) -> Tensor:
        scores = self._scores([channel], 1, telling)
        self._done += 1
        return scores

    def _rows(self, start: str | None = None) -> int:
        """How many rows there is room for, from the layer `start` on: four outputs at once."""
        names = list(self._survey.calls)
        sizes = [self._survey.nbytes[name] // self._survey.calls[name] for name in names]
        largest = max(sizes[names.index(start) if start else 0 :])
        return max(1, min(_MOST_ROWS, _ROOM // max(1, 4 * largest)))

    def _scores(self, channels: Sequence[int], images: int, telling: Telling) -> Tensor:
        """The scores, float64 ``(N, classes)``, with channel ``channels[i]`` of row i at 0."""
        at_work = 0

        def change(call: hooks.Call) -> Tensor | None:
            nonlocal at_work
            at_work += 1
            share = len(channels) * min(1.0, at_work / sum(self._calls.values()))
            telling.within((self._done + share) / self._layer.output_shape[0])
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

        batch = self._images.expand(images, *self._images.shape[1:])
        growing = GrowingRows() if images < len(channels) else nullcontext()
        with hooks.edit(self._network, self._calls, change), growing:
            scores = class_scores(self._model, self._network, batch, telling, count=len(channels))
        return scores.cpu().double()


def rounding(network: nn.Module, scores: Tensor) -> float:
    """Below this, scores of two passes differ by rounding alone, which no two batches share."""
    epsilon = torch.finfo(device_and_dtype(network)[1]).eps
    return min(256 * epsilon, 0.02) * float(scores.abs().max())
