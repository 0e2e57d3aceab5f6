"""Make an adversarial example: a picture changed a little by the gradient, to fool the network.

The basic iterative method: steps by the sign of the gradient of the predicted class's loss, each of
one level of 255 (Kurakin, Goodfellow & Bengio, "Adversarial Examples in the Physical World", 2017,
after Goodfellow et al., "Explaining and Harnessing Adversarial Examples", 2015). The picture stays
one of whole levels, 0 to 255, that a file could hold.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from hookviz.explaining.scoring import class_scores
from hookviz.hooking import replicas
from hookviz.hooking.forward_pass import ProgressReporter, backward_pass
from hookviz.hooking.precision import device_and_dtype
from hookviz.images.repainting import check_repaints, repainted
from hookviz.types import Model, ModelInput, Progress, ignore


def adversarial_input(
    model: Model, model_input: ModelInput, target: int, levels: int, progress: Progress = ignore
) -> ModelInput:
    """Move the input away from a class by `levels` steps; no pixel value changes by more.

    Args:
        model: the model.
        model_input: the input, with its picture.
        target: the class whose probability is to fall.
        levels: how many steps, each of one level of 255.
        progress: called with the share done after every step; what it raises ends the run.

    Raises:
        HookVizError: the model makes its input by a function of its own.
        ModelError: it puts out no class scores, or can't be differentiated.
    """
    _, picture = check_repaints(model, model_input)
    reporter = ProgressReporter(progress, levels)
    changed, current = picture, model_input
    for _ in range(levels):
        signs = _loss_gradient_sign(model, current, target, reporter)
        changed = np.clip(changed.astype(np.int16) + signs, 0, 255).astype(np.uint8)
        current = repainted(model, model_input, changed)
        reporter.step()
    return current


def _loss_gradient_sign(
    model: Model, model_input: ModelInput, target: int, reporter: ProgressReporter
) -> NDArray[np.int16]:
    """Return the sign of the loss's gradient at each pixel: −1, 0 or 1, ``(H, W, 1 or 3)``."""
    with torch.inference_mode(mode=False), torch.enable_grad():
        replica = replicas.for_gradients(model.network)
        images = model_input.tensor.to(*device_and_dtype(replica), copy=True).requires_grad_()
        scores = class_scores(model, replica, images, reporter).float()
        loss = -torch.log_softmax(scores, 1)[0, target]
        (gradient,) = backward_pass(model, loss, [images], reporter)
    if gradient is None:
        return np.zeros((1, 1, 1), np.int16)
    signs: NDArray[np.int16] = gradient[0].sign().to("cpu", torch.int16).numpy()
    return signs.transpose(1, 2, 0)
