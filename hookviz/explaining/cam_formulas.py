"""Class activation maps: combine a layer's channels by each method's formula, on plain arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.floating[Any]]


def grad_cam(activation: Numbers, gradient: Numbers) -> tuple[Numbers, Numbers]:
    """Compute Grad-CAM before its ReLU, ``(H, W)``, and the channels' weights, ``(C,)``.

    ``Σ_k α_k A_k`` with ``α_k`` the mean of ∂score/∂A_k over the map (Selvaraju et al., 2017,
    equations 1 and 2). Both arguments are ``(C, H, W)``.
    """
    weights = gradient.mean((1, 2))
    return np.einsum("c,chw->hw", weights, activation), weights


def grad_cam_plus_plus(activation: Numbers, gradient: Numbers) -> tuple[Numbers, Numbers]:
    """Compute Grad-CAM++ before its last ReLU, ``(H, W)``, and the channels' weights, ``(C,)``.

    ``w_k = Σ_ij α_kij max(0, g_kij)`` with ``α = g² / (2 g² + g³ Σ_ab A_kab + ε)``, g being
    ∂score/∂A (Chattopadhay et al., 2018, equations 5 and 19; ε is not theirs). Both
    arguments are ``(C, H, W)``.
    """
    safe = 1e-6  # keeps it from dividing by zero; the number that pytorch-grad-cam takes
    squares, total = gradient**2, activation.sum((1, 2), keepdims=True)
    shares = squares / (2 * squares + total * squares * gradient + safe)
    weights = (np.maximum(gradient, 0) * shares).sum((1, 2))
    return np.einsum("c,chw->hw", weights, activation), weights


def layer_cam(activation: Numbers, gradient: Numbers) -> Numbers:
    """Compute LayerCAM before its ReLU, ``(H, W)``: every cell has a weight of its own.

    ``Σ_k max(0, ∂score/∂A_k) · A_k`` (Jiang et al., 2021, equations 5 and 6). Both arguments are
    ``(C, H, W)``.
    """
    cam: Numbers = np.einsum("chw,chw->hw", np.maximum(gradient, 0), activation)
    return cam


def eigen_cam(activation: Numbers) -> tuple[Numbers, Numbers]:
    """Compute Eigen-CAM, ``(H, W)``, and the channels' share in it, ``(C,)`` of length 1.

    The cells, each with C numbers, laid along the direction in which they differ most: the first
    right singular vector of the ``(H·W, C)`` matrix (Muhammad and Yeasin, 2020), every channel's
    mean taken off first, as pytorch-grad-cam does. A singular vector has no sign; here the cell
    that is farthest from zero is positive (Chung and Ying, 2025, equation 13).
    """
    cells = np.nan_to_num(activation).reshape(len(activation), -1).T
    cells = cells - cells.mean(0)
    direction = np.linalg.svd(cells, full_matrices=False)[2][0]
    along = cells @ direction
    sign = -1 if -along.min() > along.max() else 1
    return (sign * along).reshape(activation.shape[1:]), sign * direction
