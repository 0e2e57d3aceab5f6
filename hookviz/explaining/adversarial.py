"""Make an adversarial example: a picture changed a little by the gradient, to fool the network.

Projected gradient descent (Madry et al., "Towards Deep Learning Models Resistant to Adversarial
Attacks", 2018, after Goodfellow et al., 2015): steps by the sign of the gradient of a class's loss,
brought back each time to where no number is further than a bound from where it was. The picture
that is looked at is one of whole levels, 0 to 255, that a file could hold.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.explaining.scoring import class_scores
from hookviz.hooking.forward_pass import ProgressReporter, backward_pass, differentiable
from hookviz.hooking.precision import device_and_dtype
from hookviz.images.preprocess import check_repaints, repainted
from hookviz.types import Model, ModelInput, Pixels, Progress, ignore

STEPS = 10
"""Steps where nobody says how many."""

Look = Callable[[Pixels], tuple[NDArray[np.int16], bool]]
"""From a picture ``(H, W, 3)`` to which way each number is to move, and whether it is there."""


def descended(picture: Pixels, bound: int, steps: int, look: Look) -> tuple[Pixels, bool]:
    """Move a picture by signs of a gradient, no number further than `bound` levels of 255.

    x ← x + a·sign, cut to within the bound and to 0…255 (Madry et al., 2018). The step a shrinks
    from the bound to nothing, and looked at are whole levels, as a file holds them. Returns the
    picture, ``(H, W, 3)`` uint8, and whether it is there.

    Args:
        picture: where it begins, RGB uint8 ``(H, W, 3)``.
        bound: levels of 255.
        steps: passes there and back, at most.
        look: gives the signs, −1, 0 or 1, ``(H, W, 1 or 3)``, and whether that is far enough.
    """
    start = picture.astype(np.float64)
    low, high = np.maximum(start - bound, 0), np.minimum(start + bound, 255)
    moving = start
    for step in range(steps):
        shown = np.rint(moving).astype(np.uint8)
        signs, there = look(shown)
        if there:
            return shown, True
        moving = np.clip(moving + bound * (1 - step / steps) * signs, low, high)
    shown = np.rint(moving).astype(np.uint8)
    return shown, look(shown)[1]


def adversarial_input(
    model: Model,
    model_input: ModelInput,
    target: int,
    levels: int,
    progress: Progress = ignore,
    *,
    steps: int = STEPS,
    towards: bool = False,
) -> ModelInput:
    """Move the input away from a class, or towards it; no number changes by more than `levels`.

    Args:
        model: the model.
        model_input: the input, with its picture.
        target: the class whose probability is to fall, or to rise.
        levels: the bound, in levels of 255.
        progress: called with the share done after every step; what it raises ends the run.
        steps: passes there and back.
        towards: whether the probability is to rise.

    Raises:
        HookVizError: the model makes its input by a function of its own.
        ModelError: it puts out no class scores, or can't be differentiated.
    """
    _, picture = check_repaints(model, model_input)
    if levels == 0:
        return model_input
    reporter = ProgressReporter(progress, steps + 1)

    def look(shown: Pixels) -> tuple[NDArray[np.int16], bool]:
        current = repainted(model, model_input, shown)
        signs, _ = rising_signs(model, current, target, reporter)
        reporter.step()
        return signs if towards else -signs, False

    return repainted(model, model_input, descended(picture, levels, steps, look)[0])


def rising_signs(
    model: Model, model_input: ModelInput, target: int, reporter: ProgressReporter
) -> tuple[NDArray[np.int16], Tensor]:
    """Return which way each number moves for a class to get likelier, and the class scores.

    The signs are those of the gradient of the class's log-probability: −1, 0 or 1,
    ``(H, W, 1 or 3)``; the scores, before the softmax, are ``(classes,)`` on the CPU.

    Raises:
        ModelError: the network puts out no class scores, or can't be differentiated.
    """
    with differentiable(model) as network:
        images = model_input.tensor.to(*device_and_dtype(network), copy=True).requires_grad_()
        found = class_scores(model, network, images, reporter)
        scores = found.values.float()
        likely = -found.reading.loss(scores, target)[0]
        (gradient,) = backward_pass(model, likely, [images], reporter)
    kept = scores[0].detach().cpu()
    if gradient is None:
        return np.zeros((1, 1, 1), np.int16), kept
    signs: NDArray[np.int16] = gradient[0].sign().to("cpu", torch.int16).numpy()
    return signs.transpose(1, 2, 0), kept
