"""Keep HookViz's own tensors off the meta device where a person has made that the default."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

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
