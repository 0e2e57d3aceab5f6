"""Occlusion: measure how a target falls while squares of the input are hidden one by one.

Zeiler and Fergus, "Visualizing and Understanding Convolutional Networks" (2014), section 4.2.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.explaining.attribution_target import AttributionTarget
from hookviz.explaining.batched_passes import iter_target_values
from hookviz.types import Model, ModelInput, Progress

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
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

    @property
    def grid(self) -> tuple[int, int]:
        """Number of positions in rows and in columns."""
        rows, columns = (-(-(length - self.side) // self.stride) + 1 for length in self.shape)
        return rows, columns

    def box(self, position: int) -> tuple[int, int, int, int]:
        """Return top, left, bottom and right (exclusive) of one position, numbered row by row.

        The last square of a row or column is cut off where it reaches past the input.
        """
        row, column = divmod(position, self.grid[1])
        top, left = row * self.stride, column * self.stride
        return top, left, min(top + self.side, self.shape[0]), min(left + self.side, self.shape[1])

    def over_pixels(self, values: Floats) -> Floats:
        """Average over each pixel the values of all squares that cover it: `grid` → ``(H, W)``."""
        total, covers = np.zeros((2, *self.shape))
        for position, value in enumerate(values.flat):
            top, left, bottom, right = self.box(position)
            total[top:bottom, left:right] += value
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
    """

    value: float
    drops: Floats = field(repr=False)
    map: Floats = field(repr=False)


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

    As in captum's `Occlusion`, all channels of the input are hidden at once.

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
    rows, columns = windows.grid

    def hidden(start: int, stop: int) -> Tensor:
        """Make the inputs of these numbers: 0 is the whole one, each other has a square hidden."""
        images = image.repeat(stop - start, 1, 1, 1)
        for number in range(max(1, start), stop):
            top, left, bottom, right = windows.box(number - 1)
            square = np.s_[..., top:bottom, left:right]
            images[number - start][square] = baseline[0][square]
        return images

    count = 1 + rows * columns
    batches = iter_target_values(model, model_input, target, hidden, count=count, progress=progress)
    values = torch.cat([batch.values for batch in batches]).numpy()
    drops = (values[0] - values[1:]).reshape(rows, columns)
    return Occlusion(float(values[0]), drops, windows.over_pixels(drops))
