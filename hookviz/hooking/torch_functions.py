"""Follow the torch functions that a pass calls, mark its tensors, and read tensors of any kind."""

import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor
from torch._C import _functorch
from torch.overrides import TorchFunctionMode

from hookviz.language.saying import mark

Mark = TypeVar("Mark")

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
    """Torch function mode that calls `called` in place of every torch function.

    It sees what a network's code does between its layers, where no hook is.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        return self.called(func, args, kwargs or {})

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Return what the caller gets for ``func(*args, **kwargs)``."""
        raise NotImplementedError


def function_name(function: Callable[..., Any]) -> str:
    """Return a torch function's bare name: ``relu`` for ``relu_`` and ``Tensor.relu`` too."""
    return str(getattr(function, "__name__", "")).strip("_")


def version(tensor: Tensor) -> int:
    """Return how often something was written into the tensor's memory.

    Tensors of `torch.inference_mode` do not count: theirs is 0 for ever.
    """
    return counter(tensor) or 0


def counter(tensor: Tensor) -> int | None:
    """Return the tensor's counter of writes; None where it has none.

    A view that inference mode makes of an ordinary tensor calls itself ordinary, and has none.
    """
    try:
        return None if tensor.is_inference() else tensor._version
    except RuntimeError:
        return None


def not_followed() -> Any:
    """Return a block in which no `EveryFunction` sees anything: hooks are no part of a pass."""
    return torch._C.DisableTorchFunction()


class TensorMarks(Generic[Mark]):
    """Marks on the tensors of a pass, which are forgotten as the tensors are freed.

    A tensor is told by being the same object, and is not kept alive. With `while_unwritten` a mark
    holds only until something writes into the tensor, as its version counter says.
    """

    def __init__(self, *, while_unwritten: bool = False) -> None:
        self._while_unwritten = while_unwritten
        self._marks: dict[int, tuple[weakref.ref[Tensor], int, Mark]] = {}

    def __setitem__(self, tensor: Tensor, mark: Mark) -> None:
        self._marks[id(tensor)] = (weakref.ref(tensor), version(tensor), mark)

    def get(self, tensor: Tensor) -> Mark | None:
        """Return the tensor's mark; None without one."""
        entry = self._marks.get(id(tensor))
        if entry is None or entry[0]() is not tensor:
            return None
        if self._while_unwritten and entry[1] != version(tensor):
            return None
        return entry[2]

    def __iter__(self) -> Iterator[tuple[Tensor, Mark]]:
        """Yield every tensor that is alive, with its mark."""
        for reference, _, value in list(self._marks.values()):
            tensor = reference()
            if tensor is not None:
                yield tensor, value


Key = TypeVar("Key")

MAPPED = mark("a tensor under torch.vmap")
NESTED = mark("a nested tensor")
QUANTISED = mark("a quantised tensor")
SPARSE = mark("a sparse tensor")


def kind_of(tensor: Tensor) -> str:
    """Return what kind of tensor it is, in words; empty for an ordinary one."""
    if _functorch.is_functorch_wrapped_tensor(tensor):
        return MAPPED
    if tensor.is_nested:
        return NESTED
    if tensor.is_quantized:
        return QUANTISED
    return "" if tensor.layout is torch.strided else SPARSE


def plain(tensor: Tensor) -> Tensor | None:
    """Return the tensor as rows of ordinary numbers; None where its parts form no rows.

    A sparse tensor with its zeros, a quantised one as the numbers that its whole numbers stand
    for. Of one under `torch.vmap` all that it is mapped over, as the first dimension. A nested
    tensor has no rows where its parts differ in shape. An ordinary tensor is given back itself, and
    gradients find their way through all others that have some.
    """
    kind = kind_of(tensor)
    if kind == MAPPED:
        inside = _functorch.get_unwrapped(tensor)
        if _functorch.is_batchedtensor(tensor):
            inside = inside.movedim(_functorch.maybe_get_bdim(tensor), 0)
        return plain(inside)
    if kind == NESTED:
        parts = tensor.unbind()
        is_stackable = len({part.shape for part in parts}) == 1
        return torch.stack(parts) if is_stackable else None
    if kind == QUANTISED:
        return tensor.dequantize()
    return tensor.to_dense() if kind == SPARSE else tensor


def read_together(scalars: Mapping[Key, Tensor]) -> dict[Key, float]:
    """Read numbers from their devices, those of one device and type in one wait."""
    groups: dict[object, list[Key]] = {}
    for key, each in scalars.items():
        groups.setdefault((each.device, each.dtype), []).append(key)
    read: dict[Key, float] = {}
    for keys in groups.values():
        together = torch.stack([scalars[key].detach() for key in keys])
        read |= zip(keys, together.tolist(), strict=True)
    return read
