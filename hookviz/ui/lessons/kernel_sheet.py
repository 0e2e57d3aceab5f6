"""Lay pictures of kernels out as one picture."""

import numpy as np

from hookviz.types import Pixels

_MAGNIFIED = 80  # pixels of a kernel's side, about
_GAP = 0.12  # of a kernel's side


def kernel_sheet(kernels: Pixels, across: int = 8) -> Pixels:
    """Lay kernels ``(N, rows, columns, 3)`` out in rows, enlarged, nothing between: RGBA."""
    count, rows, columns, _ = kernels.shape
    times = max(1, _MAGNIFIED // max(rows, columns))
    gap = max(1, round(_GAP * times * max(rows, columns)))
    tall, wide = rows * times + gap, columns * times + gap
    lines = -(-count // across)
    page = np.zeros((lines * tall - gap, min(count, across) * wide - gap, 4), np.uint8)
    for number, kernel in enumerate(kernels):
        top, left = number // across * tall, number % across * wide
        large = kernel.repeat(times, 0).repeat(times, 1)
        page[top : top + rows * times, left : left + columns * times, :3] = large
        page[top : top + rows * times, left : left + columns * times, 3] = 255
    return page
