"""What torch's functions make of how far tensors see: which rule each of them follows.

A function that has no rule is taken to make all of its results from all of its arguments, so that
a rectangle can come out too large and never too small.
"""

from collections.abc import Callable

from hookviz.explaining.reach import Operation, Reach, total, union
from hookviz.explaining.receptive_moves import (
    VIEWS,
    joined,
    mixed,
    moved,
    padded,
    reduced,
    reshaped,
)
from hookviz.explaining.receptive_windows import (
    adaptively_pooled,
    convolved,
    pooled,
    resized,
    transposed,
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
_MOVES = VIEWS | frozenset(
    (
        *("roll", "flip", "repeat", "tile", "rot90", "index_select"),
        *("channel_shuffle", "pixel_shuffle", "pixel_unshuffle"),
    )
)
"""Functions that only move the values of their first argument."""

_FRESH = frozenset(
    (
        *("new_ones", "new_zeros", "new_full", "new_empty", "new_tensor", "zeros_like"),
        *("ones_like", "full_like", "empty_like", "rand_like", "randn_like"),
    )
)
"""Functions that take no more than shape and type from what they are given."""

_POOLS = frozenset(("max_pool2d", "avg_pool2d", "lp_pool2d"))
_REDUCES = frozenset(("mean", "sum", "amax", "amin", "var", "std", "logsumexp", "softmax"))

_RULES: dict[str, Callable[[Operation, Reach], list[Reach]]] = {
    "conv2d": convolved,
    "conv_transpose2d": transposed,
    "interpolate": resized,
    "pad": padded,
    "linear": mixed,
    "layer_norm": mixed,
    **dict.fromkeys(_POOLS, pooled),
    **dict.fromkeys(("adaptive_avg_pool2d", "adaptive_max_pool2d"), adaptively_pooled),
    **dict.fromkeys(_RESHAPES, reshaped),
    **dict.fromkeys(_MOVES, moved),
    **dict.fromkeys(_REDUCES, reduced),
}


def through(op: Operation) -> list[Reach]:
    """What each of an operation's results sees, in their order."""
    name = function_name(op.func)
    if name in _POINTWISE or (name == "batch_norm" and op.argument(5, "training") is False):
        return [union(op.reaches, tensor.ndim) for tensor in op.results]
    if name in _FRESH:
        return [union([], tensor.ndim) for tensor in op.results]
    reaches: list[Reach] = []
    if name in ("cat", "concat"):
        reaches = [joined(op)]
    elif op.reaches[0] is not None and name in _RULES:
        reaches = _RULES[name](op, op.reaches[0])
    rest = op.reaches[1:] if name not in ("cat", "concat") else []
    return [
        union([reaches[position], total(rest, tensor.ndim)], tensor.ndim)
        if position < len(reaches)
        else total(op.reaches, tensor.ndim)
        for position, tensor in enumerate(op.results)
    ]
