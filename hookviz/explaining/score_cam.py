"""Score-CAM: weigh channels by trying each as a mask on the input, without gradients."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz.explaining.attribution_target import AttributionTarget
from hookviz.explaining.batched_passes import iter_target_values
from hookviz.explaining.cam_formulas import Numbers
from hookviz.types import Model, ModelInput, Progress, ignore


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
        *(model, model_input, AttributionTarget(target), masked),
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
