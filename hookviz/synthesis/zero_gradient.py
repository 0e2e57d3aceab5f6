"""Say why there is no gradient to follow, and name a layer where there is one."""

import torch
from torch import Tensor

from hookviz.capturing.layer_trace import layer_trace
from hookviz.errors import HookVizError, ModelError
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import backward_pass, differentiable, forward_pass
from hookviz.language.saying import say
from hookviz.synthesis.goal import Goal
from hookviz.synthesis.own_goals import FunctionObjective
from hookviz.types import Model


def zero_gradient_error(
    model: Model,
    goal: Goal,
    shape: tuple[int, ...],
    values: Tensor,
    gradient: Tensor | None,
) -> ModelError:
    """Build the error for a gradient that is missing, zero or not finite.

    Args:
        model: whose pictures.
        goal: what they are for.
        shape: ``(C, H, W)`` of each.
        values: what the goals come to, ``(N,)``.
        gradient: with respect to the pictures' parameters.
    """
    what = goal.says(model)
    if not _is_finite(values) or not _is_finite(gradient):
        why = say("{goal} is no finite number here", goal=what)
    elif gradient is None:
        why = say("no gradient gets from {goal} to the picture", goal=what)
    else:
        why = say("{goal} stays the same when the picture changes a little", goal=what)
    if isinstance(goal, FunctionObjective) and gradient is None:
        return ModelError(
            say(
                "In {model}, {reason}: it does not depend on the picture. It has to be computed "
                "of the outputs by torch alone; .detach(), .item() and torch.no_grad cut it off.",
                model=model.title,
                reason=why,
            )
        )
    other = _working_layer(model, shape, goal.layers)
    hint = (
        say(" Layer {layer!r} has one.", layer=other)
        if other
        else say(" No convolution before it has one.")
    )
    if gradient is not None:  # at another picture it may be another one
        hint += say(" Another seed may help.")
    return ModelError(
        say(
            "In {model}, {reason}, so there is no gradient to follow.{hint}",
            model=model.title,
            reason=why,
            hint=hint,
        )
    )


def _is_finite(tensor: Tensor | None) -> bool:
    return tensor is None or bool(tensor.isfinite().all())


def _working_layer(
    model: Model, shape: tuple[int, ...], layers: tuple[str | None, ...]
) -> str | None:
    """Find the last convolution, before all of `layers`, with a gradient at a noisy picture."""
    trace = layer_trace(model, shape)
    index = {info.name: info.index for info in trace.layers}
    end = min(index.get(layer or "", len(index)) for layer in layers)
    names = [conv.name for conv in trace.convs if index[conv.name] < end]
    outputs: dict[str, Tensor] = {}

    def see(call: hooks.Call) -> None:
        if isinstance(call.output, Tensor):
            outputs[call.layer] = call.output

    noise = torch.randn(1, *shape, generator=torch.Generator().manual_seed(0)).requires_grad_()
    try:
        with differentiable(model) as network:
            with hooks.observe(network, names, see):
                forward_pass(model, network, noise)
            for name in reversed(names):
                output = outputs.get(name)
                if output is None or not output.requires_grad or not _is_finite(output):
                    continue
                gradient = backward_pass(model, output.mean(), [noise])[0]
                if gradient is not None and _is_finite(gradient) and bool(gradient.any()):
                    return name
    except HookVizError:
        return None  # the network fails as a whole, and that there is no hint says it
    return None
