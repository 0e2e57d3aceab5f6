"""Class activation maps: combine a layer's channels by each method's formula.

Grad-CAM, Grad-CAM++, LayerCAM and Eigen-CAM work on plain arrays. Score-CAM tries each channel as a
mask on the input, without gradients.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz.explaining.attribution.batched_passes import iter_target_values
from hookviz.explaining.attribution.gradients import Numbers
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.types import Model, ModelInput, Progress, ignore


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


def score_cam(
    model: Model,
    model_input: ModelInput,
    activation: Numbers,
    *,
    target: int,
    top: int,
    progress: Progress = ignore,
) -> tuple[Numbers, Numbers]:
    """Compute Score-CAM before its ReLU, ``(H, W)``, and the channels' weights, ``(C,)``.

    Every channel, enlarged to the input's size and brought to 0…1, is a mask on the input. The
    weights are the softmax over the class's scores of the masked inputs (Wang et al., 2020,
    algorithm 1; the score of a baseline, which they take off, cancels in the softmax). Only the
    `top` channels with the largest mean |A| are tried; the others have weight 0.

    Args:
        model: the model.
        model_input: what the network was given.
        activation: A, what the layer put out for it, ``(C, H, W)``.
        target: the class.
        top: how many channels are tried.
        progress: called with the share done after every conv layer; what it raises ends the run.

    Raises:
        ModelError: the network can't take a masked input.
    """
    channels = strongest(activation, top)

    def masked(start: int, stop: int) -> Tensor:
        return masked_by(activation[channels[start:stop]], model_input.tensor)

    batches = iter_target_values(
        model,
        model_input,
        AttributionTarget(target),
        masked,
        count=len(channels),
        progress=progress,
    )
    scores = torch.cat([batch.values for batch in batches])
    return weighed_by(scores, channels, activation)


def strongest(activation: Numbers, top: int) -> NDArray[np.intp]:
    """Return the numbers of the `top` channels with the largest mean |A|, in ascending order."""
    strength = np.abs(activation).mean((1, 2))
    return np.sort(np.argsort(-strength, kind="stable")[:top])


def masked_by(maps: Numbers, image: Tensor) -> Tensor:
    """Multiply the image by each map, enlarged to its size and brought to 0…1: ``(N, C, H, W)``."""
    masks = torch.from_numpy(maps)[:, None]
    masks = nn.functional.interpolate(masks, image.shape[2:], mode="bilinear", align_corners=True)
    low, high = masks.amin((2, 3), keepdim=True), masks.amax((2, 3), keepdim=True)
    return image * ((masks - low) / (high - low + 1e-8))


def weighed_by(
    scores: Tensor, channels: NDArray[np.intp], activation: Numbers
) -> tuple[Numbers, Numbers]:
    """Weigh `channels` by the softmax of their scores, the others by 0 (Wang et al., 2020)."""
    weights = np.zeros(len(activation), np.float32)
    weights[channels] = scores.softmax(0).numpy()
    return np.einsum("c,chw->hw", weights, activation), weights
