"""Copy a person's network in evaluation mode, frozen, so that it runs as theirs does."""

import dis
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.errors import ModelError
from hookviz.hooking import replicas
from hookviz.hooking.copies import unwrapped
from hookviz.hooking.foreign_hooks import Place, adopted_for, foreign_hooks
from hookviz.hooking.hooks import tensors_in
from hookviz.hooking.isolation import isolated
from hookviz.hooking.precision import device_and_dtype, dtypes, take_down_dtype
from hookviz.language.saying import say


def frozen_copy(module: nn.Module, *, train: bool = False) -> nn.Module:
    """Copy a person's module, with no parameter that learns, and in evaluation mode.

    With `train` each part stays in the mode that it is in.

    Raises:
        ModelError: it can't be copied.
    """
    try:
        network = replicas.full_copy(module)
    except Exception as error:
        raise ModelError(
            say("{name} can't be copied: {error}", name=type(module).__name__, error=error)
        ) from error
    if not train:
        _evaluate(network)
    for parameter in nn.Module.parameters(network):  # theirs may give groups for an optimiser
        parameter.requires_grad_(False)
    return network


def differs_in_training(module: nn.Module) -> bool:
    """Return whether parts that are in training mode have a forward that asks for it."""
    codes = (
        getattr(getattr(type(part), "forward", None), "__code__", None)
        for part in module.modules()
        if part.training
    )
    return any(code is not None and "training" in code.co_names for code in codes)


def _evaluate(network: nn.Module) -> None:
    """Put a network into evaluation mode, even if a person's ``eval`` or ``train`` fails."""
    with isolated(network):
        try:
            network.eval()
        except Exception:  # noqa: BLE001 - of other arguments, or whatever they raise
            for part in network.modules():
                part.training = False


def running_as(module: nn.Module, network: nn.Module, shape: tuple[int, ...]) -> nn.Module:
    """Return the frozen copy, or another one of `module`, that takes an input of `shape`.

    Some need a hook that sets what their layers use, as an equalised learning rate does. Some
    train as they run, so that their parameters have to learn. Some have weights of several
    precisions, of which the first is not that of the input.
    """
    network = _with_hooks_that_set(module, network, shape)
    finest = dtypes(network)
    if len(finest) < 2 and _scores(network, shape) is not None:
        return network
    for learns in (False, True):
        if learns:
            _learn_as(module, network)
        for dtype in finest:
            if _scores(network, shape, dtype) is not None:
                take_down_dtype(network, dtype)
                return network
    for parameter in nn.Module.parameters(network):
        parameter.requires_grad_(False)
    return network


def _learn_as(module: nn.Module, network: nn.Module) -> None:
    own = dict(nn.Module.named_parameters(module))
    for name, parameter in nn.Module.named_parameters(network):
        if name in own and own[name].requires_grad:
            parameter.requires_grad_()


def _with_hooks_that_set(
    module: nn.Module, network: nn.Module, shape: tuple[int, ...]
) -> nn.Module:
    """Return the copy, or one with such hooks where it computes something else without them."""
    setting: Mapping[Place, Any] = {
        key: hook for key, hook in foreign_hooks(module).items() if _sets_something(hook)
    }
    if not setting:
        return network
    try:
        with adopted_for(module, setting):
            hooked = frozen_copy(module, train=any(part.training for part in network.modules()))
    except ModelError:  # what can't be copied, such as a lock, is somebody's who looks on
        return network
    for dtype in dtypes(network):
        scores, hooked_scores = (_scores(each, shape, dtype) for each in (network, hooked))
        if hooked_scores is not None:
            return network if scores is not None and _same(scores, hooked_scores) else hooked
    return network


def _sets_something(hook: Any) -> bool:
    """Return whether a hook's code sets an attribute, as one that makes a weight does."""
    hook = unwrapped(hook)
    function = hook if isinstance(hook, FunctionType) else vars(type(hook)).get("__call__")
    if not isinstance(function, FunctionType):
        return False
    return any(
        step.opname == "STORE_ATTR" or step.argval in ("setattr", "_parameters", "_buffers")
        for step in dis.get_instructions(function)
    )


def _scores(
    network: nn.Module, shape: tuple[int, ...], dtype: torch.dtype | None = None
) -> list[Tensor] | None:
    """Run a copy on the same noise every time, and return its outputs; None where it fails."""
    device, own = device_and_dtype(network)
    values = torch.randn(1, *shape, generator=torch.Generator().manual_seed(0))
    try:
        with torch.inference_mode(mode=False), torch.no_grad(), isolated(network):
            output = replicas.full_copy(network)(values.to(device, dtype or own))
    except Exception:  # noqa: BLE001 - a person's own code can raise anything
        return None
    return [tensor for _, tensor in tensors_in(output)]


def _same(some: list[Tensor], others: list[Tensor]) -> bool:
    return len(some) == len(others) and all(map(torch.equal, some, others))
