"""Repeat an image's companions, such as class tokens, where a layer multiplies the rows."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from hookviz.hooking.torch_functions import EveryFunction

_IN_PLACE = frozenset(("add_", "sub_", "mul_", "div_"))
"""What torch calls for ``a += b`` and its like, whose result takes the name of `a`."""

_JOINS = frozenset(("cat", "concat", "concatenate"))


class GrowingRows(EveryFunction):
    """Torch function mode that repeats a single row where it is joined to many rows.

    A hook can put out N rows where one image went in, and broadcasting adds what comes from before
    the layer, such as a residual connection, to each of them. It does not where one row is written
    into (``one += many``) or both are concatenated; here the one is repeated.

    A network that goes on with `one` itself (``one.add_(many)``, which torch can't tell from the
    former), or whose code depends on the number of rows, fails or computes something else: callers
    have to compare.
    """

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Return what `func` returns, with N rows where any operand has N."""
        name = getattr(func, "__name__", "")
        if name in _IN_PLACE and len(args) > 1:
            one, many, *more = args
            if isinstance(many, Tensor) and _is_one_of(one, many):
                args = (one.expand(len(many), *one.shape[1:]).clone(), many, *more)
        elif name in _JOINS and isinstance(args[0] if args else None, list | tuple):
            dim = kwargs.get("dim", kwargs.get("axis", args[1] if len(args) > 1 else 0))
            if dim % max(1, args[0][0].ndim):
                args = (_as_many(args[0]), *args[1:])
        return func(*args, **kwargs)


def _as_many(tensors: list[Tensor] | tuple[Tensor, ...]) -> list[Tensor]:
    longest = max(tensors, key=lambda tensor: len(tensor) if tensor.ndim else 0)
    return [
        _repeated(tensor, len(longest)) if _is_one_of(tensor, longest) else tensor
        for tensor in tensors
    ]


def _repeated(one: Tensor, count: int) -> Tensor:
    many = one.expand(count, *one.shape[1:])
    if one.ndim == 4 and one.is_contiguous(memory_format=torch.channels_last):
        many = many.contiguous(memory_format=torch.channels_last)  # else what is joined is not
    return many


def _is_one_of(one: Tensor, many: Tensor) -> bool:
    """Return whether `one` has a single row and `many` has more, in as many dimensions."""
    return one.ndim == many.ndim > 1 and len(one) == 1 < len(many)
