"""How much of its receptive field a cell makes use of: the mean |gradient| over many images.

Luo, Li, Urtasun and Zemel, "Understanding the Effective Receptive Field in Deep Convolutional
Neural Networks" (2016).
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MASS = 0.95
"""The share of all |gradient| by which a field's use is measured."""


def weights_of_pixels(gradient: NDArray[np.floating]) -> Floats:
    """|gradient| of each pixel, ``(H, W)``: the sum over the channels of ``(C, H, W)``."""
    weights: Floats = np.abs(gradient).sum(0, dtype=np.float64)
    return weights


def strongest(weights: Floats, mass: float = MASS) -> NDArray[np.bool_]:
    """The fewest pixels that hold a share of the mass: True where they are, ``(H, W)``.

    The strongest come first, equal ones by place; none where there is no mass.
    """
    order = np.argsort(-weights, axis=None, kind="stable")
    filled = np.cumsum(weights.flat[order])
    chosen = np.zeros(weights.size, bool)
    if weights.size and filled[-1] > 0:
        chosen[order[: int(np.searchsorted(filled, mass * filled[-1])) + 1]] = True
    return chosen.reshape(weights.shape)
