"""What torch's functions make of how far tensors see: which rule each of them follows.

A function that has no rule is taken to make all of its results from all of its arguments, so that
a rectangle can come out too large and never too small.
"""

from collections.abc import Callable
from contextlib import suppress

import torch

from hookviz.explaining.reach import (
    Operation,
    Reach,
    TooManyValuesError,
    broadcast,
    total,
    union,
)
from hookviz.explaining.receptive_moves import (
    VIEWS,
    copied,
    joined,
    mixed,
    reduced,
    reshaped,
    viewed,
)
from hookviz.explaining.receptive_windows import (
    adaptively_pooled,
    convolved,
    folded,
    padded,
    pooled,
    resized,
    transposed,
    unfolded,
)
from hookviz.hooking.torch_functions import ACTIVATIONS, function_name

_ARITHMETIC = frozenset(
    f"{prefix}{kind}"
    for prefix in ("", "i", "r")
    for kind in ("add", "sub", "mul", "div", "truediv", "pow", "floordiv")
)
_POINTWISE = (
    ACTIVATIONS
    | _ARITHMETIC
    | frozenset(
        (
            *("dropout", "dropout1d", "dropout2d", "feature_dropout", "alpha_dropout", "clone"),
            *("detach", "contiguous", "to", "float", "half", "double", "bfloat16", "type_as"),
            *("abs", "neg", "exp", "log", "log1p", "sqrt", "rsqrt", "square", "erf", "sin", "cos"),
            *("maximum", "minimum", "where", "lerp", "addcmul", "addcdiv", "clamp_min", "copy"),
            *("clamp_max", "reciprocal", "sign", "floor", "ceil", "round", "nan_to_num"),
        )
    )
)
"""Functions that make each value from the values in the same place of their arguments."""

_RESHAPES = frozenset(("view", "reshape", "flatten", "unflatten", "view_as", "reshape_as"))
_COPIES = frozenset(("roll", "flip", "repeat", "tile", "rot90", "index_select", "channel_shuffle"))
"""Functions that move the values of their first argument into memory of their own."""

_FRESH = frozenset(
    (
        *("new_ones", "new_zeros", "new_full", "new_empty", "new_tensor", "zeros_like"),
        *("ones_like", "full_like", "empty_like", "rand_like", "randn_like"),
    )
)
"""Functions that take no more than shape and type from their first argument."""

_POOLS = frozenset(("max_pool2d", "avg_pool2d", "lp_pool2d"))
_REDUCES = frozenset(("mean", "sum", "amax", "amin", "var", "std", "logsumexp", "softmax"))

_RULES: dict[str, Callable[[Operation, Reach], list[Reach]]] = {
    "conv2d": convolved,
    "conv_transpose2d": transposed,
    "interpolate": resized,
    "pad": padded,
    "pixel_shuffle": folded,
    "pixel_unshuffle": unfolded,
    "linear": mixed,
    "layer_norm": mixed,
    **dict.fromkeys(_POOLS, pooled),
    **dict.fromkeys(("adaptive_avg_pool2d", "adaptive_max_pool2d"), adaptively_pooled),
    **dict.fromkeys(_RESHAPES, reshaped),
    **dict.fromkeys(VIEWS, viewed),
    **dict.fromkeys(_COPIES, copied),
    **dict.fromkeys(_REDUCES, reduced),
}


def through(op: Operation) -> list[Reach | None]:
    """What each of an operation's results sees, in their order; None where that is nothing."""
    name = function_name(op.func)
    if is_value_by_value(op):
        return [_value_by_value(op, tensor.shape) for tensor in op.results]
    if name in _FRESH:
        return [total(op.reaches[1:], tensor.ndim) for tensor in op.results]
    joins = name in ("cat", "concat")
    reaches: list[Reach] = []
    with suppress(TooManyValuesError):
        if joins:
            reaches = [joined(op)]
        elif op.reaches[0] is not None and name in _RULES:
            reaches = _RULES[name](op, op.reaches[0])
    rest = [] if joins else op.reaches[1:]
    return [
        union([reaches[position], total(rest, tensor.ndim)], tensor.ndim)
        if position < len(reaches)
        else total(op.reaches, tensor.ndim)
        for position, tensor in enumerate(op.results)
    ]


def is_value_by_value(op: Operation) -> bool:
    """Whether each value of the results is made from those in the same place of the arguments."""
    name = function_name(op.func)
    return name in _POINTWISE or (name == "batch_norm" and op.argument(5, "training") is False)


def _value_by_value(op: Operation, shape: torch.Size) -> Reach | None:
    if any(len(given) > len(shape) for given in op.shapes):
        return total(op.reaches, len(shape))  # as `where` of a condition alone, which counts cells
    every = zip(op.reaches, op.shapes, strict=True)
    return union((broadcast(reach, given, shape) for reach, given in every), len(shape))
