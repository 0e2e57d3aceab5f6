"""Device and precision: of a network's input, and of the tensors that HookViz makes itself.

HookViz's own tensors stay off the meta device where a person has made that the default.
"""

from collections.abc import Callable, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import ParamSpec, TypeVar

import torch
from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def with_numbers(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Wrap a function so that the tensors that it creates have numbers.

    Under ``torch.device("meta")``, in which a person builds networks without memory, each new
    tensor is a shape alone; so would be the input of a network that has its numbers long since.
    """

    @wraps(function)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with numbers():
            return function(*args, **kwargs)

    return run


def numbers() -> AbstractContextManager[object]:
    """Return a block in which new tensors have numbers; it costs some microseconds."""
    # torch.get_default_device raises up to torch 2.9 after set_default_device(None)
    return torch.device("cpu") if torch.empty(0).is_meta else nullcontext()


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
