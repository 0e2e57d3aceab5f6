"""Score-CAM: weigh channels by trying each as a mask on the input, without gradients."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hookviz.explaining.attribution_target import AttributionTarget
from hookviz.explaining.batched_passes import iter_target_values
from hookviz.explaining.cam import Numbers
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
    strength = np.abs(activation).mean((1, 2))
    channels = np.sort(np.argsort(-strength, kind="stable")[:top])
    image = model_input.tensor

    def masked(start: int, stop: int) -> Tensor:
        maps = torch.from_numpy(activation[channels[start:stop]])[:, None]
        masks = F.interpolate(maps, image.shape[2:], mode="bilinear", align_corners=True)
        low, high = masks.amin((2, 3), keepdim=True), masks.amax((2, 3), keepdim=True)
        return image * ((masks - low) / (high - low + 1e-8))

    batches = iter_target_values(
        *(model, model_input, AttributionTarget(target), masked),
        count=len(channels),
        progress=progress,
    )
    weights = np.zeros(len(activation), np.float32)
    weights[channels] = torch.cat([batch.values for batch in batches]).softmax(0).numpy()
    return np.einsum("c,chw->hw", weights, activation), weights
