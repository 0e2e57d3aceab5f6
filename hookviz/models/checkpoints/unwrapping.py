"""Find the state dict in what a file held: unwrap it, and check that it can be weights."""

import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from hookviz.errors import WeightsError, shorten
from hookviz.language.saying import joined, say

_DEEPEST = 6  # wrappings around a state dict
USUAL_KEYS = (
    *("state_dict", "model_state_dict", "model_state", "model", "network_state_dict", "network"),
    *("net_state_dict", "net", "module", "params", "weights"),
)
"""Where training scripts put the state dict, in small letters, likeliest first."""

_AVERAGED = re.compile(r"(^|_)(ema|swa|averaged?)(_|$)|params_ema", re.IGNORECASE)
_NO_WEIGHTS = re.compile(  # what lies beside the weights and can hold tensors too
    r"optim|sched|scaler|rng|callback|loops|hyper_?param|hparams|args|config|amp$", re.IGNORECASE
)


def find_state_dict(loaded: Any, name: str) -> dict[str, Tensor]:
    """Return the state dict inside `loaded`, unwrapped and checked."""
    if not isinstance(loaded, Mapping):
        raise WeightsError(
            say(
                "{name} holds {kind}, not a state dict (names and tensors).",
                name=name,
                kind=type(loaded).__name__,
            )
        )
    tensors = _unwrapped(loaded, _DEEPEST, set())
    if not tensors:
        keys = joined(shorten(str(key), 40) for key in list(loaded)[:5]) or "nothing"
        raise WeightsError(
            say("{name} holds no tensors with names; it holds {keys}.", name=name, keys=keys)
        )
    for key, tensor in tensors.items():
        fault = _why_no_weights(tensor)
        if fault:
            raise WeightsError(
                say(
                    "{name} can't be used: {key} {fault}. Save its weights as ordinary tensors "
                    "of floating point numbers.",
                    name=name,
                    key=shorten(key),
                    fault=fault,
                )
            )
    return OrderedDict((key, tensor.detach()) for key, tensor in tensors.items())


def _unwrapped(node: Mapping[Any, Any], depth: int, seen: set[int]) -> dict[str, Tensor]:
    """Return the tensors under the likeliest key, else the most tensors that lie together.

    Real state dicts hold no dicts, so a dict under a reporter name goes before tensors beside it,
    such as a best accuracy.
    """
    if depth == 0 or id(node) in seen:
        return {}
    seen.add(id(node))
    inner = {
        key.casefold(): value
        for key, value in node.items()
        if isinstance(key, str) and isinstance(value, Mapping)
    }
    for key in USUAL_KEYS:
        if key in inner:
            tensors = _unwrapped(inner.pop(key), depth - 1, seen)
            if tensors:
                return tensors
    best = {k: v for k, v in node.items() if isinstance(k, str) and isinstance(v, Tensor)}
    averaged = [inner.pop(key) for key in list(inner) if _AVERAGED.search(key)]
    for key, child in inner.items():
        tensors = {} if _NO_WEIGHTS.search(key) else _unwrapped(child, depth - 1, seen)
        best = max(best, tensors, key=len)
    for child in averaged:
        tensors = _unwrapped(child, depth - 1, seen)
        if len(tensors) > len(best):
            return tensors
    return best


def _why_no_weights(tensor: Tensor) -> str:
    """Say what keeps a tensor from being weights; empty where nothing does."""
    if tensor.is_nested or tensor.layout != torch.strided:
        return say("is a sparse or nested tensor")
    if tensor.is_quantized:
        return say("is quantised")
    if tensor.is_meta:
        return say("has a shape and no values")
    if tensor.is_complex():
        return say("holds complex numbers")
    if tensor.nbytes > tensor.untyped_storage().nbytes():
        return say("claims {count:,} values, more than the file holds for it", count=tensor.numel())
    return ""
