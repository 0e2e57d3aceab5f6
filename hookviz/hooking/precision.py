"""Where a network computes, and of which precision its input is."""

from collections.abc import MutableMapping

import torch
from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

_known: MutableMapping[nn.Module, torch.dtype] = WeakIdKeyDictionary()


def device_and_dtype(network: nn.Module) -> tuple[torch.device, torch.dtype]:
    """Where and in which precision the network takes its input.

    Its first parameter of real numbers tells, unless a pass has shown another precision.
    """
    # Its own `parameters` may be overridden, and give groups for an optimiser.
    for parameter in nn.Module.parameters(network):
        if parameter.is_floating_point():
            return parameter.device, _known.get(network, parameter.dtype)
    return torch.device("cpu"), torch.float32


def dtypes(network: nn.Module) -> tuple[torch.dtype, ...]:
    """The precisions that its input may have, the finest first: those of its parameters."""
    every = {device_and_dtype(network)[1]}
    every |= {each.dtype for each in nn.Module.parameters(network) if each.is_floating_point()}
    return tuple(sorted(every, key=lambda dtype: -torch.finfo(dtype).bits))


def take_down_dtype(network: nn.Module, dtype: torch.dtype) -> None:
    """Remember in which precision a pass has shown the network to take its input."""
    _known[network] = dtype


def remember_dtype(replica: nn.Module, *, of: nn.Module) -> None:
    """Let a replica take what the network takes."""
    if of in _known:
        _known[replica] = _known[of]
