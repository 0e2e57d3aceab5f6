"""Run a batch of images for their class scores."""

from typing import Any

from torch import Tensor, nn

from hookviz.errors import ModelError
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass
from hookviz.outputs.answer import Scores
from hookviz.outputs.reading import no_scores, read_scores
from hookviz.types import Model


def class_scores(
    model: Model,
    replica: nn.Module,
    images: Tensor,
    reporter: ProgressReporter | None = None,
    *,
    count: int | None = None,
) -> Scores:
    """Return the scores of every image, ``(N, classes)``, with what they are.

    On the network's device and in its precision; with a graph if gradients are on.

    Args:
        model: whose network `replica` is a replica of.
        replica: with the hooks that are wanted on it.
        images: ``(N, C, H, W)``.
        reporter: through which hooks report the progress of the pass.
        count: N, where hooks change how many images there are.

    Raises:
        ModelError: the network can't take these images, or its output has no row of scores.
    """
    output = forward_pass(model, replica, images, reporter)
    return scores_in(model, output, len(images) if count is None else count)


def scores_in(model: Model, output: Any, count: int) -> Scores:
    """Return the scores in a network's output, ``(count, classes)``, with what they are.

    Raises:
        ModelError: there are none.
    """
    scores = read_scores(model.output, output, count, len(model.categories))
    if scores is None:
        raise ModelError(no_scores(model.title, output, count))
    return scores
