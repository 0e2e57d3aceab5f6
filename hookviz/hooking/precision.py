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


def is_dtype_known(network: nn.Module) -> bool:
    """Return whether a pass has shown in which precision the network takes its input."""
    return network in _known


def take_down_dtype(network: nn.Module, dtype: torch.dtype | None) -> None:
    """Remember in which precision a pass has shown the network to take its input; None forgets."""
    if dtype is None:
        _known.pop(network, None)
    else:
        _known[network] = dtype
