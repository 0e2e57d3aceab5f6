"""Choose the receptive field rule of each torch function, and apply it to a call's arguments.

A function without a rule is taken to make all of its results from all of its arguments, so that a
receptive field can come out too large and never too small.
"""

from collections.abc import Callable
from contextlib import suppress

import torch

from hookviz.explaining.receptive_attention import (
    PRODUCTS,
    attention_rule,
    multi_head_rule,
    product_rule,
)
from hookviz.explaining.receptive_conv_pool import (
    adaptive_pool2d_rule,
    conv2d_rule,
    conv_transpose2d_rule,
    interpolate_rule,
    pad_rule,
    pixel_shuffle_rule,
    pixel_unshuffle_rule,
    pool2d_rule,
)
from hookviz.explaining.receptive_extent import (
    Extent,
    Operation,
    TooManyValuesError,
    broadcast_extent,
    merge_extents,
    reduce_extents,
)
from hookviz.explaining.receptive_reshape import (
    VIEWS,
    cat_rule,
    copy_rule,
    linear_rule,
    reduce_rule,
    reshape_rule,
    view_rule,
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
"""Elementwise functions: each value is made from those at the same index of the arguments."""

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

_RULES: dict[str, Callable[[Operation, Extent], list[Extent]]] = {
    "conv2d": conv2d_rule,
    "conv_transpose2d": conv_transpose2d_rule,
    "interpolate": interpolate_rule,
    "pad": pad_rule,
    "pixel_shuffle": pixel_shuffle_rule,
    "pixel_unshuffle": pixel_unshuffle_rule,
    "linear": linear_rule,
    "layer_norm": linear_rule,
    **dict.fromkeys(_POOLS, pool2d_rule),
    **dict.fromkeys(("adaptive_avg_pool2d", "adaptive_max_pool2d"), adaptive_pool2d_rule),
    **dict.fromkeys(_RESHAPES, reshape_rule),
    **dict.fromkeys(VIEWS, view_rule),
    **dict.fromkeys(_COPIES, copy_rule),
    **dict.fromkeys(_REDUCES, reduce_rule),
}
_OF_SEVERAL: dict[str, Callable[[Operation], list[Extent]]] = {
    **dict.fromkeys(("cat", "concat"), lambda op: [cat_rule(op)]),
    **dict.fromkeys(PRODUCTS, product_rule),
    "scaled_dot_product_attention": attention_rule,
    "multi_head_attention_forward": multi_head_rule,
}
"""Rules that go by all arguments, not by the first alone."""


def extents_of_results(op: Operation) -> list[Extent | None]:
    """Return the extents of an operation's results; None for one that the image is not in."""
    name = function_name(op.func)
    if is_elementwise(op):
        return [_elementwise(op, tensor.shape) for tensor in op.results]
    if name in _FRESH:
        return [reduce_extents(op.extents[1:], tensor.ndim) for tensor in op.results]
    extents: list[Extent] = []
    with suppress(TooManyValuesError):
        if name in _OF_SEVERAL:
            extents = _OF_SEVERAL[name](op)
        elif op.extents[0] is not None and name in _RULES:
            extents = _RULES[name](op, op.extents[0])
    rest = [] if name in _OF_SEVERAL else op.extents[1:]
    return [
        merge_extents([extents[position], reduce_extents(rest, tensor.ndim)], tensor.ndim)
        if position < len(extents)
        else reduce_extents(op.extents, tensor.ndim)
        for position, tensor in enumerate(op.results)
    ]


def is_elementwise(op: Operation) -> bool:
    """Return whether each value of the results depends on the same index of the arguments alone."""
    name = function_name(op.func)
    return name in _POINTWISE or (name == "batch_norm" and op.argument(5, "training") is False)


def _elementwise(op: Operation, shape: torch.Size) -> Extent | None:
    if any(len(own) > len(shape) for own in op.shapes):
        # as `where` of a condition alone, which counts cells
        return reduce_extents(op.extents, len(shape))
    operands = zip(op.extents, op.shapes, strict=True)
    return merge_extents(
        (broadcast_extent(extent, own, shape) for extent, own in operands), len(shape)
    )
