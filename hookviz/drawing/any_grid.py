"""Draw bare numbers of sound, a volume or a clip as `make_grid` draws those of an image."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.grid import Grid, make_grid


def grid_of_any(values: NDArray[Any], **options: Any) -> Grid:
    """Draw ``(C, H, W)`` as it is, ``(C, L)`` as strips, of ``(C, D, H, W)`` one slice.

    Args:
        values: the numbers.
        options: of `make_grid`.

    The slice is the one with the largest |value|; the grid says which.

    >>> grid_of_any(np.zeros((2, 7))).shape
    (2, 1, 7)
    """
    if values.ndim == 2:
        return make_grid(values[:, None], **options)
    if values.ndim == 4:
        largest = np.nan_to_num(np.abs(values)).max((0, 2, 3))
        return make_grid(values, depth=int(largest.argmax()), **options)
    return make_grid(values, **options)
