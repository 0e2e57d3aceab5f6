"""Tell on which device a network computes, and in which precision it takes its input."""

from collections.abc import MutableMapping

import torch
from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

_known: MutableMapping[nn.Module, torch.dtype] = WeakIdKeyDictionary()


def device_and_dtype(network: nn.Module) -> tuple[torch.device, torch.dtype]:
    """Return the device and the precision in which the network takes its input.

    Its first parameter of real numbers tells, unless a pass has shown another precision.
    """
    # Its own `parameters` may be overridden, and give groups for an optimiser.
    for parameter in nn.Module.parameters(network):
        if parameter.is_floating_point():
            return parameter.device, _known.get(network, parameter.dtype)
    return torch.device("cpu"), torch.float32


def dtypes(network: nn.Module) -> tuple[torch.dtype, ...]:
    """Return the precisions that the input may have, the finest first: the parameters'."""
    every = {device_and_dtype(network)[1]}
    every |= {each.dtype for each in nn.Module.parameters(network) if each.is_floating_point()}
    return tuple(sorted(every, key=lambda dtype: -torch.finfo(dtype).bits))


def take_down_dtype(network: nn.Module, dtype: torch.dtype) -> None:
    """Remember in which precision a pass has shown the network to take its input."""
    _known[network] = dtype


def remember_dtype(replica: nn.Module, *, of: nn.Module) -> None:
    """Give a replica the precision that was remembered for the network."""
    if of in _known:
        _known[replica] = _known[of]
