"""Compute the weights of torch's own attention functions, which they do not hand out."""

import inspect
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from hookviz.hooking.plain_tensors import plain


def attention_weights(
    query: Tensor,
    key: Tensor,
    _value: Any = None,
    attn_mask: Tensor | None = None,
    _dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    **_rest: Any,
) -> Tensor | None:
    """Compute the weights of ``F.scaled_dot_product_attention``, whose arguments these are.

    In float32 at least, without dropout; the formula is that of its documentation. A query that a
    mask keeps from every key attends to none: its row is 0, as PyTorch has it.

    Returns:
        ``(…, heads, queries, keys)``; None where nested tensors make no rows.
    """
    rows, columns = plain(query), plain(key)
    if rows is None or columns is None:
        return None
    kind = torch.promote_types(rows.dtype, torch.float32)
    if enable_gqa:
        columns = columns.repeat_interleave(rows.shape[-3] // columns.shape[-3], -3)
    scores = rows.to(kind) @ columns.to(kind).mT
    scores *= rows.shape[-1] ** -0.5 if scale is None else scale
    if is_causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(later, -torch.inf)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -torch.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    nothing = (scores == -torch.inf).all(-1, keepdim=True)
    return scores.softmax(-1).masked_fill(nothing, 0)


def multi_head_weights(*args: Any, **kwargs: Any) -> Tensor:
    """Compute the weights of ``F.multi_head_attention_forward``, whose arguments these are."""
    return multi_head_output(*args, **kwargs)[1]


def multi_head_arguments(*args: Any, **kwargs: Any) -> dict[str, Any]:
    """Return the arguments of ``F.multi_head_attention_forward`` by name, defaults filled in."""
    call = inspect.signature(functional.multi_head_attention_forward).bind(*args, **kwargs)
    call.apply_defaults()
    return call.arguments


def multi_head_output(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Call ``F.multi_head_attention_forward`` for what it puts out, and for every head's weights.

    Without dropout, and by no fused kernel: where gradients are on they go through the weights.
    """
    function: Any = functional.multi_head_attention_forward
    given = multi_head_arguments(*args, **kwargs)
    padding = given["key_padding_mask"]
    if given["is_causal"] and not given["need_weights"] and padding is None:
        # A hint that PyTorch goes by, and by no mask, where it returns no weights.
        shape = len(given["query"]), len(given["key"])
        given["attn_mask"] = given["query"].new_ones(shape, dtype=torch.bool).triu(1)
    given |= {"is_causal": False, "training": False}
    given |= {"need_weights": True, "average_attn_weights": False}
    output, weights = function(**given)
    return output, weights
