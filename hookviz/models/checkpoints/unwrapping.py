"""Find the state dict in what a file held: unwrap it, and check that it can be weights."""

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False, slots=True)
class StateDict:
    """State dict of a file that can hold several.

    Attributes:
        tensors: by name.
        key: where it lies in the file, ``model.state_dict``; empty at its top.
        others: where others lie, of at least half as many tensors.
    """

    tensors: dict[str, Tensor]
    key: str = ""
    others: tuple[str, ...] = ()


def find_state_dict(loaded: Any, name: str, key: str | None = None) -> StateDict:
    """Return the state dict inside `loaded`, unwrapped and checked.

    Args:
        loaded: what the file held.
        name: what to call it.
        key: which is taken where it holds several: the key that it lies under, or the first part
            of its tensors' names.
    """
    if not isinstance(loaded, Mapping):
        raise WeightsError(
            say(
                "{name} holds {kind}, not a state dict (names and tensors).",
                name=name,
                kind=type(loaded).__name__,
            )
        )
    places = _places(loaded)
    if key is None:
        tensors = _unwrapped(loaded, _DEEPEST, set())
    else:
        tensors = _chosen(loaded, places, key, name)
    if not tensors:
        keys = joined(shorten(str(key), 40) for key in list(loaded)[:5]) or "nothing"
        raise WeightsError(
            say("{name} holds no tensors with names; it holds {keys}.", name=name, keys=keys)
        )
    for each, tensor in tensors.items():
        fault = _why_no_weights(tensor)
        if fault:
            raise WeightsError(
                say(
                    "{name} can't be used: {key} {fault}. Save its weights as ordinary tensors "
                    "of floating point numbers.",
                    name=name,
                    key=shorten(each),
                    fault=fault,
                )
            )
    own = next((place for place, those in places.items() if _is_same(those, tensors)), key or "")
    return StateDict(
        OrderedDict((key, tensor.detach()) for key, tensor in tensors.items()),
        own,
        tuple(k for k, those in places.items() if k != own and 2 * len(those) >= len(tensors)),
    )


def _places(loaded: Mapping[Any, Any]) -> dict[str, dict[str, Tensor]]:
    """Return every state dict in a file by where it lies: at least two tensors with names."""
    found: dict[str, dict[str, Tensor]] = {}
    queue: list[tuple[str, Mapping[Any, Any]]] = [("", loaded)]
    seen: set[int] = set()
    for place, node in queue:
        if id(node) in seen or place.count(".") >= _DEEPEST:
            continue
        seen.add(id(node))
        tensors = _tensors_of(node)
        if len(tensors) > 1:
            found[place] = tensors
        for key, value in node.items():
            if isinstance(value, Mapping) and isinstance(key, str) and not _NO_WEIGHTS.search(key):
                queue.append((f"{place}.{key}".removeprefix("."), value))
    return found


def _chosen(
    loaded: Mapping[Any, Any], places: Mapping[str, dict[str, Tensor]], key: str, name: str
) -> dict[str, Tensor]:
    """Return the state dict under a key, or the tensors whose names begin with it."""
    under = [those for place, those in places.items() if f"{place}.".startswith(f"{key}.")]
    if under:
        return under[0]
    tensors = _unwrapped(loaded, _DEEPEST, set())
    chosen = {each: tensors[each] for each in tensors if each.startswith(f"{key}.")}
    if not chosen:
        tops = dict.fromkeys(each.partition(".")[0] for each in tensors)
        known = [place for place in places if place] or list(tops)
        raise WeightsError(
            say(
                "{name} has no weights under key={key!r}; it has {keys}.",
                name=name,
                key=shorten(key),
                keys=joined(shorten(repr(each), 40) for each in known[:5]) or "none",
            )
        )
    return chosen


def _tensors_of(node: Mapping[Any, Any]) -> dict[str, Tensor]:
    return {k: v for k, v in node.items() if isinstance(k, str) and isinstance(v, Tensor)}


def _is_same(some: Mapping[str, Tensor], others: Mapping[str, Tensor]) -> bool:
    return some.keys() == others.keys() and all(some[key] is others[key] for key in some)


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
    best = _tensors_of(node)
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
