"""Occlusion: how a number falls while a part of the input is hidden, part by part.

Zeiler and Fergus, "Visualizing and Understanding Convolutional Networks" (2014), section 4.2.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from hookviz.explaining.backward import Quantity
from hookviz.explaining.many_inputs import each_value, value_of
from hookviz.types import Model, ModelInput, Progress

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Occlusion:
    """By how much a quantity falls where a window hides the input.

    Attributes:
        value: the quantity of the whole input.
        drops: value − the quantity with the window at each of its positions, float64
            ``(rows, columns)`` of positions.
        map: for each pixel the mean of the drops of all windows over it, float64 ``(H, W)``.
        window, stride: in pixels of the input.
    """

    value: float
    drops: Floats = field(repr=False)
    map: Floats = field(repr=False)
    window: int
    stride: int

    def box(self, row: int, column: int) -> tuple[int, int, int, int]:
        """Top, left, bottom, right of a window on the input; the last ones are not included."""
        top, left = row * self.stride, column * self.stride
        bottom, right = (
            min(start + self.window, side)
            for start, side in zip((top, left), self.map.shape, strict=True)
        )
        return top, left, bottom, right


def positions(side: int, window: int, stride: int) -> int:
    """At how many positions along a side a window stands, the last of which may reach past it."""
    return -(-(side - window) // stride) + 1


def occlusion(
    model: Model,
    model_input: ModelInput,
    quantity: Quantity,
    baseline: Tensor,
    *,
    window: int,
    stride: int,
    progress: Progress,
) -> Occlusion:
    """Hide a square of the input at every position, and see how the quantity falls.

    As captum's `Occlusion` has it: the windows start at multiples of the stride, all channels of
    the input are hidden, the last window of a row or column is cut off where it reaches past the
    input, and a pixel has the mean of the windows that hide it.

    Args:
        model: the model.
        model_input: the input, ``(1, C, H, W)``.
        quantity: whose fall is measured.
        baseline: what takes the place of what is hidden, ``(1, C, H, W)``.
        window: side of the square in pixels, at most the shorter side of the input.
        stride: pixels from one position to the next, at most the window.
        progress: told how far it is; what it raises ends it.

    Raises:
        HookVizError: as `each_value` does.
    """
    image = model_input.tensor
    rows, columns = (positions(side, window, stride) for side in image.shape[2:])
    found = Occlusion(
        value_of(model, model_input, quantity),
        np.zeros((rows, columns)),
        np.zeros(tuple(image.shape[2:])),
        window,
        stride,
    )

    def hidden(start: int, stop: int) -> Tensor:
        images = image.repeat(stop - start, 1, 1, 1)
        for place in range(start, stop):
            top, left, bottom, right = found.box(*divmod(place, columns))
            part = np.s_[..., top:bottom, left:right]
            images[place - start][part] = baseline[0][part]
        return images

    for some in each_value(
        model, model_input, quantity, hidden, count=rows * columns, progress=progress
    ):
        end = some.start + len(some.values)
        found.drops.flat[some.start : end] = found.value - some.values.numpy()
    covers = np.zeros_like(found.map)
    for row, column in np.ndindex(rows, columns):
        top, left, bottom, right = found.box(row, column)
        found.map[top:bottom, left:right] += found.drops[row, column]
        covers[top:bottom, left:right] += 1
    np.divide(found.map, covers, out=found.map)
    return found
