"""Tell by a quick look at its modules whether a network is still what it was.

What was found out about a network, and its replicas at rest, hold for the modules, tensors, hooks
and modes that it had then.
"""

from operator import attrgetter
from typing import Any

from torch import nn

_TABLES = attrgetter(
    *("_modules", "_parameters", "_buffers"),
    *("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"),
)


def every_module(network: nn.Module) -> list[nn.Module]:
    """List each module once, itself first; `nn.Module.modules` takes several times as long."""
    found, listed = [network], {id(network)}
    for module in found:  # grows
        for part in module._modules.values():
            if part is not None and id(part) not in listed:
                listed.add(id(part))
                found.append(part)
    return found


def is_training(network: nn.Module) -> bool:
    """Return whether any module is in training mode."""
    for module in every_module(network):  # noqa: SIM110 - every pass asks, and this is sooner
        if module.training:
            return True
    return False


def state_of(network: nn.Module) -> int:
    """Return a number that is another one after the network was changed.

    It tells of modules, parameters, buffers and hooks that came, went or were replaced, and of
    modes. Not of values: whoever shares a tensor sees those, and its device and precision.
    """
    state: list[Any] = []
    for module in every_module(network):
        state.append((id(module), module.training))
        modules, parameters, buffers, *hooks = _TABLES(module)
        if modules:
            state += modules.keys()  # of a TorchScript module it is no dictionary
        if parameters:
            state += map(id, parameters.values())
        if buffers:
            state += map(id, buffers.values())
        if any(hooks):
            state += (tuple(table) for table in hooks)  # their keys
    return hash(tuple(state))
