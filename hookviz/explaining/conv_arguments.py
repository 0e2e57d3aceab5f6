"""Read the arguments of torch's convolutions and poolings as plain numbers, vertical first."""

from collections.abc import Sequence
from typing import Any


def pair(argument: int | Sequence[int]) -> tuple[int, int]:
    """Expand an argument that may be one number for both axes to (vertical, horizontal)."""
    if isinstance(argument, int):
        return argument, argument
    return int(argument[0]), int(argument[-1])


def padding_around(
    padding: Any, kernel: Sequence[int], dilation: tuple[int, int]
) -> tuple[int, int, int, int]:
    """Return the columns and rows of zeros that ``conv2d`` pads: left, right, top, bottom.

    With ``"same"`` they are dilation · (kernel − 1) in all; an odd one goes to the bottom and to
    the right.

    Args:
        padding: as ``conv2d`` takes it: a number, a pair, ``"valid"`` or ``"same"``.
        kernel: (height, width) in taps.
        dilation: (vertical, horizontal) distance of the taps.
    """
    if padding == "same":
        rows, columns = (step * (count - 1) for step, count in zip(dilation, kernel, strict=True))
        return columns // 2, columns - columns // 2, rows // 2, rows - rows // 2
    vertical, horizontal = (0, 0) if padding == "valid" else pair(padding)
    return horizontal, horizontal, vertical, vertical
