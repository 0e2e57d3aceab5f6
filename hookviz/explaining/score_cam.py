"""Score-CAM: channels weighed by trying each as a mask on the input, without gradients."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hookviz.explaining.cam import Numbers
from hookviz.explaining.scoring import class_scores, images_at_once
from hookviz.hooking.forward_pass import private_replica
from hookviz.types import Model, ModelInput, Progress, ignore


def score_cam(
    model: Model,
    model_input: ModelInput,
    activation: Numbers,
    logits: Tensor,
    *,
    target: int,
    top: int,
    progress: Progress = ignore,
) -> tuple[Numbers, Numbers]:
    """Score-CAM before its ReLU, ``(H, W)``, and the channels' weights, ``(C,)``.

    Every channel, enlarged to the input's size and brought to 0…1, is a mask on the input. The
    weights are the softmax over the class's scores of the masked inputs (Wang et al., 2020,
    algorithm 1; the score of a baseline, which they take off, cancels in the softmax). Only the
    `top` channels with the largest mean |A| are tried; the others have weight 0.

    Args:
        model: the model.
        model_input: what the network was given.
        activation: A, what the layer put out for it, ``(C, H, W)``.
        logits: the scores for it, ``(classes,)``.
        target: the class.
        top: how many channels are tried.
        progress: told before every batch; what it raises ends the run.

    Raises:
        ModelError: the network can't take a masked input.
    """
    progress(0.0)
    strength = np.abs(activation).mean((1, 2))
    channels = np.sort(np.argsort(-strength, kind="stable")[:top])
    image, scores = model_input.tensor, []
    with private_replica(model) as replica:
        size = images_at_once(model, replica, model_input, logits)
        for start in range(0, len(channels), size):
            progress(start / len(channels))
            batch = torch.from_numpy(activation[channels[start : start + size]])[:, None]
            masks = F.interpolate(batch, image.shape[2:], mode="bilinear", align_corners=True)
            low, high = masks.amin((2, 3), keepdim=True), masks.amax((2, 3), keepdim=True)
            masked = image * ((masks - low) / (high - low + 1e-8))
            scores.append(class_scores(model, replica, masked)[:, target].to("cpu", torch.float32))
    weights = np.zeros(len(activation), np.float32)
    weights[channels] = torch.cat(scores).softmax(0).numpy()
    return np.einsum("c,chw->hw", weights, activation), weights
