"""Find the strongest channels of every layer on an image, as small maps."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hookviz.capturing.layer_trace import input_trace
from hookviz.capturing.recorded_pass import activation_of
from hookviz.drawing.dimensions import middle_maps
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass, private_replica
from hookviz.hooking.hooks import Recorder
from hookviz.types import ActivationKey, Model, ModelInput, Progress, ignore

CHANNELS = 3
"""How many small maps each layer has on a network's map."""

_SIDE = 40  # pixels of a small map's longer side


@dataclass(frozen=True, eq=False, slots=True)
class StrongestMaps:
    """The strongest channels of what one call put out.

    Attributes:
        shape: of all its maps, ``(C, H, W)``.
        channels: their numbers, the strongest first.
        small: their maps in a small size, float32 ``(K, rows, columns)``: means of the cells.
    """

    shape: tuple[int, int, int]
    channels: tuple[int, ...]
    small: Tensor


def small_size(model_input: ModelInput) -> tuple[int, int]:
    """Return how many rows and columns a small map has on a network's map: the input, in small."""
    shape = model_input.tensor.shape
    height, width = shape[-2:] if len(shape) > 3 else (1, 1)
    longer = max(height, width)
    return max(1, round(_SIDE * height / longer)), max(1, round(_SIDE * width / longer))


def strongest_maps(
    model: Model,
    model_input: ModelInput,
    *,
    count: int = 3,
    size: tuple[int, int] = (32, 32),
    rank: Callable[[ActivationKey, Tensor], Tensor] | None = None,
    progress: Progress = ignore,
) -> dict[ActivationKey, StrongestMaps]:
    """Return the channels with the highest values of every layer and block that puts out maps.

    They are made small as each layer returns, so that no more than one layer's activations are
    held at once, and one pass does.

    Args:
        model: the model.
        model_input: what the network is given.
        count: how many channels of each.
        size: rows and columns of the small maps; a map of fewer cells keeps its cells' values.
        rank: returns the number by which each channel is ranked, ``(C,)``, of a call's address and
            its maps ``(C, H, W)``; the highest value by default.
        progress: called with the share done; what it raises ends the run.

    Raises:
        ModelError: the network can't take this input.
    """
    trace = input_trace(model, model_input)
    wanted = {address for found in trace.map_outputs.values() for address in found}
    reporter = ProgressReporter(progress, sum(layer.calls for layer in trace.maps))
    found = {}

    def see(call: hooks.Call) -> None:
        recorder = Recorder()
        recorder.see(call)
        for record in recorder.records:
            if record.address not in wanted:
                continue
            activation = activation_of(trace, record)
            if activation is None:
                continue
            maps = middle_maps(activation.values)
            if maps.dim() == 3:
                finite = torch.nan_to_num(maps, nan=0.0, posinf=0.0, neginf=0.0)
                by = finite.flatten(1).amax(1) if rank is None else rank(record.address, finite)
                found[record.address] = _strongest(finite, by, count, size)
        reporter.step()

    with private_replica(model) as replica, hooks.observe(replica, trace.map_outputs, see):
        forward_pass(model, replica, model_input.tensor, reporter)
    return found


def _strongest(maps: Tensor, by: Tensor, count: int, size: tuple[int, int]) -> StrongestMaps:
    channels = by.argsort(descending=True, stable=True)[:count]
    chosen = maps[channels]
    rows, columns = (min(have, want) for have, want in zip(chosen.shape[1:], size, strict=True))
    small = torch.nn.functional.adaptive_avg_pool2d(chosen[None], (rows, columns))
    small = torch.nn.functional.interpolate(small, size, mode="nearest-exact")[0]
    depth, height, width = maps.shape
    return StrongestMaps((depth, height, width), tuple(channels.tolist()), small)


def on_one_scale(small: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return maps ``(K, H, W)`` with the greatest distance from zero of all of them as 1."""
    greatest = float(small.abs().max())
    return (small / greatest if greatest > 0 else small).numpy()
