"""Measure which part of its receptive field a cell makes use of, by its |gradient| over images.

Luo, Li, Urtasun and Zemel, "Understanding the Effective Receptive Field in Deep Convolutional
Neural Networks" (2016).
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MASS = 0.95
"""The share of all |gradient| by which a field's use is measured."""


def weights_of_pixels(gradient: NDArray[np.floating]) -> Floats:
    """Sum |gradient|, ``(C, H, W)``, over the channels: a weight for each pixel, ``(H, W)``."""
    weights: Floats = np.abs(gradient).sum(0, dtype=np.float64)
    return weights


def strongest(weights: Floats, mass: float = MASS) -> NDArray[np.bool_]:
    """Mark the fewest pixels that hold a share of the mass, bool ``(H, W)``.

    The strongest come first, equal ones by position; none where there is no mass.
    """
    order = np.argsort(-weights, axis=None, kind="stable")
    filled = np.cumsum(weights.flat[order])
    chosen = np.zeros(weights.size, bool)
    if weights.size and filled[-1] > 0:
        chosen[order[: int(np.searchsorted(filled, mass * filled[-1])) + 1]] = True
    return chosen.reshape(weights.shape)
