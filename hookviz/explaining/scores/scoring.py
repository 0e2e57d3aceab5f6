"""Run a batch of images for their class scores, and read which class a person means."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from hookviz.errors import ModelError, SettingError, nearest_names, shorten
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass
from hookviz.language.saying import say
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


def class_number(
    value: Any, names: Sequence[str], count: int, title: str, *, parameter: str = "target"
) -> int:
    """Return the number of a class.

    Args:
        value: the number, also as text, or the name.
        names: of the network's classes, as far as it has some.
        count: how many scores the network puts out.
        title: what the network is called.
        parameter: what the choice is called, for the message.

    Raises:
        SettingError: the network has no such class; the nearest name is named.

    >>> from hookviz.explaining.scores.scoring import class_number
    >>> class_number("star", ("circle", "star"), 2, "ours"), class_number("0", (), 2, "ours")
    (1, 0)
    """
    if isinstance(value, str) and not value.isdecimal():
        if value in names:
            return list(names).index(value)
        near = nearest_names(value, names)
        hint = say(" Did you mean {names}?", names=" or ".join(map(repr, near))) if near else ""
        raise SettingError(
            say(
                "{model} knows no class {value!r}.{hint}",
                model=title,
                value=shorten(value),
                hint=hint,
            )
        )
    try:
        number = -1 if isinstance(value, bool) else int(value)
    except (TypeError, ValueError, OverflowError):  # Python reads up to 4,300 digits
        number = -1
    if not 0 <= number < count:
        raise SettingError(
            say(
                "{name}={value} is not {expected}.",
                name=parameter,
                value=shorten(repr(value)),
                expected=say("a class of {model}: 0 to {last}", model=title, last=count - 1),
            )
        )
    return number
