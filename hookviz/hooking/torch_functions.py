"""Torch functions as a pass calls them: a way to see each of them, and names for kinds of them."""

from collections.abc import Callable, Mapping
from typing import Any

from torch.overrides import TorchFunctionMode

NORMS = frozenset(("batch_norm", "instance_norm", "group_norm"))
"""Torch functions that normalise a map and keep its channels, by `function_name`."""

ACTIVATIONS = frozenset(
    (
        *("relu", "relu6", "leaky_relu", "prelu", "rrelu", "threshold", "clamp", "hardtanh"),
        *("elu", "selu", "celu", "gelu", "silu", "mish", "softplus", "softsign", "softshrink"),
        *("sigmoid", "log_sigmoid", "logsigmoid", "hardsigmoid", "hardswish", "hardshrink"),
        *("tanh", "tanhshrink"),
    )
)
"""Torch functions that make each cell of a map from that cell alone, by `function_name`."""


class EveryFunction(TorchFunctionMode):
    """While it is entered, `called` stands for every torch function that is called.

    It sees what a network's code does between its layers, where no hook is.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """What `called` makes of the call; inside it, functions are themselves."""
        return self.called(func, args, kwargs or {})

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """What the caller gets for ``func(*args, **kwargs)``."""
        raise NotImplementedError


def function_name(function: Callable[..., Any]) -> str:
    """A torch function's bare name: ``relu`` for ``relu_`` and ``Tensor.relu`` too."""
    return str(getattr(function, "__name__", "")).strip("_")
