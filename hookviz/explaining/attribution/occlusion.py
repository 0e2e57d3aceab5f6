"""Occlusion: measure how a target falls while boxes of the input are hidden one by one.

Zeiler and Fergus, "Visualizing and Understanding Convolutional Networks" (2014), section 4.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.capturing.layer_trace import input_trace
from hookviz.explaining.attribution.batched_passes import iter_target_values
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.hooking.channels_last import faster_model, lay_out, rounding_note
from hookviz.types import Model, ModelInput, Progress

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Windows:
    """Sliding boxes over an input: squares over an image, a stretch of sound, a block of a volume.

    Attributes:
        shape: of the input without its channels: height and width of an image in pixels.
        sides: of a box along each axis, at most those of the input.
        strides: from one to the next, at most `sides`, so that no pixel is left out.
    """

    shape: tuple[int, ...]
    sides: tuple[int, ...]
    strides: tuple[int, ...]

    @cached_property
    def boxes(self) -> list[tuple[slice, ...]]:
        """The boxes, row by row."""
        return box_slices(self.shape, self.sides, self.strides)

    @property
    def grid(self) -> tuple[int, ...]:
        """Number of positions along each axis: down and across."""
        return tuple(
            len({box[axis].start for box in self.boxes}) for axis in range(len(self.shape))
        )


def box_slices(
    shape: Sequence[int], sides: Sequence[int], strides: Sequence[int]
) -> list[tuple[slice, ...]]:
    """Return the rows and the columns of every box, row by row; so too of one axis or three.

    The last box of an axis is cut off where it reaches past the input.
    """
    axes = [
        [slice(begin, min(begin + side, size)) for begin in range(0, size - side + stride, stride)]
        for size, side, stride in zip(shape, sides, strides, strict=True)
    ]
    places = np.ndindex(*map(len, axes))
    return [tuple(axis[at] for axis, at in zip(axes, place, strict=True)) for place in places]


def hidden(image: Tensor, box: tuple[slice, ...], baseline: Tensor) -> Tensor:
    """Return a copy of the input with the baseline in place of a box, all channels of it."""
    image, inside = image.clone(), (slice(None), slice(None), *box)
    image[inside] = baseline[inside]
    return image


def over_pixels(drops: Floats, boxes: list[tuple[slice, ...]]) -> Floats:
    """Return for each pixel the mean of the drops of all boxes over it, ``(H, W)``."""
    total, covers = np.zeros((2, *(axis.stop for axis in boxes[-1])))
    for box, drop in zip(boxes, drops.flat, strict=True):
        total[box] += drop
        covers[box] += 1
    mean: Floats = total / covers
    return mean


@dataclass(frozen=True, eq=False, slots=True)
class Occlusion:
    """Drops of a target where a box hides the input.

    Attributes:
        value: the target of the whole input.
        drops: value − the target with the box at each position, float64, of `Windows.grid`.
        map: for each pixel the mean of the drops of all boxes over it, float64 ``(H, W)``.
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
    """Hide a box of the input at every position, and measure how the target falls.

    As in captum's `Occlusion`, all channels of the input are hidden at once. Convolutional networks
    run with their channels last in memory, so the numbers are those of plain passes to rounding
    (see `hookviz.hooking.channels_last`).

    Args:
        model: the model.
        model_input: the input, ``(1, C, H, W)``, or of other axes than H and W.
        target: whose fall is measured.
        baseline: what takes the place of what is hidden, of the input's shape.
        windows: where the box stands.
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
        """Make the inputs of these numbers: 0 is the whole one, then a box is hidden."""
        boxes = windows.boxes[max(0, start - 1) : stop - 1]
        whole = [image] if start == 0 else []
        return torch.cat([*whole, *(hidden(image, box, baseline) for box in boxes)])

    count = 1 + len(windows.boxes)
    batches = iter_target_values(fast, model_input, target, inputs, count=count, progress=progress)
    values = torch.cat([batch.values for batch in batches]).numpy()
    drops = (values[0] - values[1:]).reshape(windows.grid)
    return Occlusion(
        float(values[0]), drops, over_pixels(drops, windows.boxes), rounding_note(fast)
    )
