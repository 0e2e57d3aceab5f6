"""Find what the sentences say in which lenses answer: where a map is highest, and how focused."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.language.saying import mark, say

_NINTHS = (
    *(mark("at the upper left"), mark("at the top"), mark("at the upper right")),
    *(mark("at the left"), mark("in the middle"), mark("at the right")),
    *(mark("at the lower left"), mark("at the bottom"), mark("at the lower right")),
)


def highest_ninth(values: NDArray[Any]) -> str:
    """Return in which ninth of an image a map ``(H, W)`` is highest, in words.

    >>> import numpy as np
    >>> highest_ninth(np.eye(9)[:1])
    'at the upper left'
    """
    rows, columns = values.shape
    row, column = divmod(int(np.nan_to_num(values, nan=-np.inf).argmax()), columns)
    return say(_NINTHS[row * 3 // rows * 3 + column * 3 // columns])


def share_of_half(sizes: NDArray[Any]) -> float | None:
    """Return the share of cells, the largest first, that have half of a map; None of all zeros.

    >>> import numpy as np
    >>> share_of_half(np.array([[1.0, 8.0], [2.0, 3.0]]))
    0.25
    """
    summed = np.sort(sizes, axis=None)[::-1].cumsum(dtype=np.float64)
    if not summed[-1] > 0:
        return None
    return (int(np.searchsorted(summed, summed[-1] / 2)) + 1) / sizes.size
