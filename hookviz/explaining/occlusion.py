"""Occlusion: measure how a target falls while squares of the input are hidden one by one.

Zeiler and Fergus, "Visualizing and Understanding Convolutional Networks" (2014), section 4.2.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.capturing.layer_trace import input_trace
from hookviz.explaining.attribution_target import AttributionTarget
from hookviz.explaining.batched_passes import iter_target_values
from hookviz.explaining.receptive_field import Box
from hookviz.hooking.channels_last import faster_model, how, lay_out
from hookviz.types import Model, ModelInput, Progress

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Windows:
    """Sliding squares over an input, in rows and columns.

    Attributes:
        shape: height and width of the input in pixels.
        side: of a square, at most the shorter side of the input.
        stride: from one to the next, at most `side`, so that no pixel is left out.
    """

    shape: tuple[int, int]
    side: int
    stride: int

    @cached_property
    def boxes(self) -> list[Box]:
        """The squares, row by row."""
        return squares(*self.shape, self.side, self.stride)

    @property
    def grid(self) -> tuple[int, int]:
        """Number of positions down and across."""
        rows = len({top for top, _, _, _ in self.boxes})
        return rows, len(self.boxes) // rows


def squares(height: int, width: int, side: int, stride: int) -> list[Box]:
    """Return top, left, bottom and right of every square, row by row.

    The last square of a row or column is cut off where it reaches past the input.
    """
    return [
        (top, left, min(top + side, height), min(left + side, width))
        for top in range(0, height - side + stride, stride)
        for left in range(0, width - side + stride, stride)
    ]


def hidden(image: Tensor, box: Box, baseline: Tensor) -> Tensor:
    """Return a copy of the input with the baseline in place of a square, all channels of it."""
    top, left, bottom, right = box
    image = image.clone()
    image[..., top:bottom, left:right] = baseline[..., top:bottom, left:right]
    return image


def over_pixels(drops: Floats, boxes: list[Box]) -> Floats:
    """Return for each pixel the mean of the drops of all squares over it, ``(H, W)``."""
    total, covers = np.zeros((2, *boxes[-1][2:]))
    for (top, left, bottom, right), drop in zip(boxes, drops.flat, strict=True):
        total[top:bottom, left:right] += drop
        covers[top:bottom, left:right] += 1
    mean: Floats = total / covers
    return mean


@dataclass(frozen=True, eq=False, slots=True)
class Occlusion:
    """Drops of a target where a square hides the input.

    Attributes:
        value: the target of the whole input.
        drops: value − the target with the square at each position, float64, of `Windows.grid`.
        map: for each pixel the mean of the drops of all squares over it, float64 ``(H, W)``.
        how: how its numbers are rounded, in words; empty of plain passes.
    """

    value: float
    drops: Floats = field(repr=False)
    map: Floats = field(repr=False)
    how: str = ""


def occlusion(
    model: Model,
    model_input: ModelInput,
    target: AttributionTarget,
    baseline: Tensor,
    *,
    windows: Windows,
    progress: Progress,
) -> Occlusion:
    """Hide a square of the input at every position, and measure how the target falls.

    As in captum's `Occlusion`, all channels of the input are hidden at once. Convolutional networks
    run with their channels last in memory, so the numbers are those of plain passes to rounding
    (see `hookviz.hooking.channels_last`).

    Args:
        model: the model.
        model_input: the input, ``(1, C, H, W)``.
        target: whose fall is measured.
        baseline: what takes the place of what is hidden, ``(1, C, H, W)``.
        windows: where the square stands.
        progress: called with the share done; what it raises ends the run.

    Raises:
        HookVizError: as `iter_target_values` does.
    """
    image = model_input.tensor
    input_trace(model, model_input)  # tells whether a pass does more than compute
    fast = faster_model(model, image)
    if fast is not model:
        image = lay_out(image)

    def inputs(start: int, stop: int) -> Tensor:
        """Make the inputs of these numbers: 0 is the whole one, then a square is hidden."""
        boxes = windows.boxes[max(0, start - 1) : stop - 1]
        whole = [image] if start == 0 else []
        return torch.cat([*whole, *(hidden(image, box, baseline) for box in boxes)])

    count = 1 + len(windows.boxes)
    batches = iter_target_values(fast, model_input, target, inputs, count=count, progress=progress)
    values = torch.cat([batch.values for batch in batches]).numpy()
    drops = (values[0] - values[1:]).reshape(windows.grid)
    return Occlusion(float(values[0]), drops, over_pixels(drops, windows.boxes), how(fast))
