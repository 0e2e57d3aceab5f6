"""Ablate a layer's channels one by one: the class scores without each, and how they change.

A channel is ablated by writing 0 at the layer's own output, each time that the layer runs; of a
linear layer in every token, those that stand for no cell included, such as a class token. How many
passes are run at once tells `hookviz.explaining.part_changes`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from hookviz.capturing.layer_trace import input_trace
from hookviz.errors import ModelError
from hookviz.explaining.batched_passes import progress_of_part, rising
from hookviz.explaining.part_changes import MAX_WORK, PartChanges, work_behind
from hookviz.explaining.scoring import class_scores
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import ProgressReporter, private_replica
from hookviz.language.saying import say
from hookviz.types import LayerInfo, Model, ModelInput, Progress, ignore
from hookviz.wording import number


@dataclass(frozen=True, eq=False, slots=True)
class ChannelEffects:
    """How a class's score changes when a channel of a layer is 0, channel by channel.

    Attributes:
        layer: whose channels they are.
        label: of the class.
        score: of the class with all channels.
        score_changes: score without the channel − `score`, float64 ``(C,)``: below zero where the
            channel speaks for the class.
        probability: of the class with all channels; None where the network has none.
        probability_changes: likewise, ``(C,)``.
        rounding: the largest change of a score that rounding alone may make.
        flips: how many channels change the likeliest class, each by itself.
        how: the passes were rounded, in words; empty of plain ones.
    """

    layer: str
    label: str
    score: float
    score_changes: NDArray[np.float64] = field(repr=False)
    probability: float | None
    probability_changes: NDArray[np.float64] | None = field(repr=False)
    rounding: float
    flips: int
    how: str = ""


class ChannelAblation(PartChanges):
    """Runs passes with channels of one layer ablated, each by itself."""

    def __init__(self, model: Model, model_input: ModelInput, layer: LayerInfo) -> None:
        super().__init__(model, model_input, layer, layer.output_shape[0])
        self._axis = -len(layer.output_shape) if layer.kernel_size else -1  # of the channels

    def change(self, row: Tensor, _call: hooks.Call, parts: Sequence[int]) -> None:
        """Write 0 into these channels."""
        row.movedim(self._axis, 0)[list(parts)] = 0


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
    work = sum(info.output_shape[0] * work_behind(trace, info.name) for info in infos)
    channels = sum(info.output_shape[0] for info in infos)
    if work > MAX_WORK:
        raise ModelError(
            say(
                "To switch {channels:,} channels of {model} off one by one takes {multiply_adds} "
                "multiply-adds, more than {limit}. Choose one layer alone, a smaller "
                "input, or another method.",
                channels=channels,
                model=model.title,
                multiply_adds=number(work),
                limit=number(MAX_WORK),
            )
        )
    effects, done, reporter = {}, 0, rising(progress)
    with private_replica(model) as replica:
        before = class_scores(model, replica, model_input.tensor).values[0].cpu().double()
    for info in infos:
        count = info.output_shape[0]
        within = ProgressReporter(progress_of_part(reporter, done, count, channels))
        after = ChannelAblation(model, model_input, info).scores_with_each(before, within)
        effects[info.name] = (after - before).norm(dim=1)
        done += count
    return effects
