"""A map of evidence before it is coloured: made smooth, and what its end colour stands for."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

Numbers = NDArray[np.floating[Any]]


def resized(values: Numbers, height: int, width: int) -> Numbers:
    """A map, ``(H, W)``, made smooth and ``(height, width)``: linear between the cells' middles."""
    tensor = torch.from_numpy(np.ascontiguousarray(values, np.float32))[None, None]
    interpolated = F.interpolate(tensor, (height, width), mode="bilinear", align_corners=False)
    smooth: Numbers = interpolated[0, 0].numpy()
    return smooth


def color_limit(values: Numbers, percentile: float = 100) -> float:
    """What the end colour of a map stands for: a percentile of |values|, and never 0.

    Only finite values count; without any that is not 0 it is 1.
    """
    sizes = np.abs(values[np.isfinite(values)])
    if not sizes.any():
        return 1.0
    return float(np.percentile(sizes, percentile)) or float(sizes.max())
