"""Run a batch of images for their class scores, and check the output's shape."""

from typing import Any

from torch import Tensor, nn

from hookviz.errors import ModelError
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass
from hookviz.language.saying import say, say_count
from hookviz.types import Model
from hookviz.wording import times


def class_scores(
    model: Model,
    replica: nn.Module,
    images: Tensor,
    reporter: ProgressReporter | None = None,
    *,
    count: int | None = None,
) -> Tensor:
    """Return the scores of every image before the softmax, ``(N, classes)``.

    On the network's device and in its precision; with a graph if gradients are on.

    Args:
        model: whose network `replica` is a replica of.
        replica: with the hooks that are wanted on it.
        images: ``(N, C, H, W)``.
        reporter: through which hooks report the progress of the pass.
        count: N, where hooks change how many images there are.

    Raises:
        ModelError: the network can't take these images, or doesn't put out ``(N, classes)``.
    """
    output = forward_pass(model, replica, images, reporter)
    return scores_in(model, output, len(images) if count is None else count)


def scores_in(model: Model, output: Any, count: int) -> Tensor:
    """Check that a network's output is ``(count, classes)``, and return it.

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
