"""Class scores of a batch of images in one pass, and how many images a pass takes."""

from typing import Any

import torch
from torch import Tensor, nn

from hookviz.capturing.survey import survey_input
from hookviz.errors import ModelError
from hookviz.hooking.forward_pass import Telling, device_and_dtype, forward_pass
from hookviz.language.saying import say, say_count
from hookviz.types import Model, ModelInput
from hookviz.wording import times

WORK = 8e9  # multiply-adds of one batch: a fraction of a second, after which progress is told
MOST_AT_ONCE = 32  # images in a batch


def class_scores(
    model: Model,
    replica: nn.Module,
    images: Tensor,
    telling: Telling | None = None,
    *,
    count: int | None = None,
) -> Tensor:
    """The scores of every image before the softmax, ``(N, classes)``, as the network puts them out.

    They are where, and as precise as, the network computes; with a graph if gradients are on.

    Args:
        model: whose network `replica` is a replica of.
        replica: with the hooks that are wanted on it.
        images: ``(N, C, H, W)``.
        telling: through which hooks tell how far the pass is.
        count: N, where hooks change how many images there are.

    Raises:
        ModelError: the network can't take these images, or doesn't put out ``(N, classes)``.
    """
    output = forward_pass(model, replica, images, telling)
    return scores_in(model, output, len(images) if count is None else count)


def scores_in(model: Model, output: Any, count: int) -> Tensor:
    """A network's output, which is ``(count, classes)``.

    Raises:
        ModelError: it is something else.
    """
    if isinstance(output, Tensor) and output.ndim == 2 and len(output) == count:
        return output
    kind = (
        times(output.shape) or say("one number") if isinstance(output, Tensor) else say("no tensor")
    )
    raise ModelError(
        say_count(
            "{model} puts out no class scores: for {count} image it gives {kind}, and "
            "not {count}×classes. Every model of the catalog gives a score per class, "
            "for example shapesnet.",
            "{model} puts out no class scores: for {count} images it gives {kind}, and "
            "not {count}×classes. Every model of the catalog gives a score per class, "
            "for example shapesnet.",
            count,
            model=model.title,
            kind=kind,
        )
    )


def images_at_once(
    model: Model, replica: nn.Module, model_input: ModelInput, logits: Tensor
) -> int:
    """How many images to give the network in one pass: 1 where those of a batch are not apart.

    Args:
        model: the model.
        replica: of its network, without hooks.
        model_input: an image of the size that is meant.
        logits: its scores in a pass of its own, ``(classes,)``.
    """
    layers = survey_input(model, model_input).layers
    work = sum(layer.multiply_adds * layer.calls for layer in layers)
    on_gpu = device_and_dtype(model.network)[0].type != "cpu"
    many = MOST_AT_ONCE if on_gpu else int(min(MOST_AT_ONCE, WORK // max(1, work)))
    if many <= 1:
        return 1
    pair = torch.cat([model_input.tensor, torch.zeros_like(model_input.tensor)])
    try:
        first = class_scores(model, replica, pair)[0].to("cpu", torch.float32)
    except ModelError:
        return 1  # made for one image; what else is wrong shows with one, too
    # A batch norm without averages of its own, for example, mixes the images of a batch.
    apart = torch.allclose(first, logits, rtol=5e-3, atol=5e-3 * float(logits.abs().max()))
    return many if apart else 1
