"""A default device that has numbers: what HookViz makes of its own is made there."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def with_numbers(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function in a block of its own, where tensors have numbers.

    Under ``torch.device("meta")``, in which a person builds networks without memory, each new
    tensor is a shape alone; so would be the input of a network that has its numbers long since.
    """

    @wraps(function)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with numbers():
            return function(*args, **kwargs)

    return run


def numbers() -> AbstractContextManager[object]:
    """Such a block; asking for the device takes some microseconds."""
    is_meta = torch.get_default_device().type == "meta"
    return torch.device("cpu") if is_meta else nullcontext()
