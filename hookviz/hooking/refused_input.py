"""Say which input a network could not take, where it failed, and what it does take."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from hookviz.errors import ModelError
from hookviz.hooking.failing_call import FailingCall, first_line
from hookviz.language.saying import say
from hookviz.types import Model
from hookviz.wording import times

_TOO_FEW = "Expected more than 1 "  # as torch's norms begin that have one value per channel


def refused_input(
    model: Model,
    shape: Sequence[int],
    reason: Exception,
    failed: FailingCall | None = None,
    *,
    own: Sequence[int],
    count: int,
    runs: Callable[[Model, Sequence[int]], bool],
) -> ModelError:
    """Return the error that says which input a network could not take, where, and what it takes.

    Args:
        model: whose input.
        shape: of it, ``(C, H, W)``.
        reason: what the network raised.
        failed: the call in which it did.
        own: the shape that the network is thought to be made for.
        count: how many images it was given at once.
        runs: whether an input of a shape runs through a model.
    """
    said = {
        "model": model.title,
        "shape": times(shape),
        "layer": f"{failed}: " if failed else "",
        "reason": first_line(reason),
        "own_shape": times(own),
    }
    if count > 1 and runs(model, shape):
        return ModelError(
            say(
                "{model} can't take {count} images at once: {layer}{reason}. It takes one of "
                "{shape}.",
                **said,
                count=count,
            )
        )
    if runs(model, own):
        return ModelError(
            say(
                "{model} can't take an input of {shape}: {layer}{reason}. It is made for "
                "{own_shape}.",
                **said,
            )
        )
    if str(reason).startswith(_TOO_FEW):
        in_evaluation = model.train and runs(replace(model, train=False), shape)
        return ModelError(
            say(
                "{model} can't take an input of {shape}: {layer}{reason}. One image gives that "
                "norm one value per channel, which has no deviation.{hint}",
                **said,
                hint=say(" Without train=True it runs.") if in_evaluation else "",
            )
        )
    return ModelError(
        say(
            "{model} can't take an input of {shape}: {layer}{reason}. Nor does {own_shape} run, "
            "which it was thought to be made for: wrap(network, example=…) says what it takes, by "
            "the arguments of a call that runs.",
            **said,
        )
    )
