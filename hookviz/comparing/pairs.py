"""Pair the activations of two captures that can be compared, or say why they can't."""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from hookviz.errors import HookVizError, UnknownLayerError
from hookviz.language.saying import joined, say
from hookviz.types import Activation, Capture
from hookviz.wording import times

Pair = tuple[Activation, Activation]

_SUGGESTED = 3  # pairs that an error names


def pairs_of(
    a: Capture, b: Capture, layer: str | None = None, other_layer: str | None = None
) -> tuple[tuple[Pair, ...], dict[str, str]]:
    """Return the pairs of activations in A's order, and why the rest of A is left out.

    Args:
        a: one capture.
        b: another one.
        layer: a written address, or a layer's name; None for all that both have.
        other_layer: the same in B; `layer` by default.

    Raises:
        UnknownLayerError: nothing is recorded there.
        HookVizError: no pair has one shape; the message says what can be compared.
    """
    wanted = _activations(a, layer if layer is not None else other_layer)
    others = _activations(b, other_layer if other_layer is not None else layer)
    is_pair = layer is not None and other_layer is not None
    beside: Mapping[Any, Activation]
    if is_pair and len(wanted) == len(others) == 1:  # whichever call and part they are of
        beside = {_key(wanted[0], by_name=True): others[0]}
    else:
        beside = {_key(activation, by_name=is_pair): activation for activation in others}
    pairs: list[Pair] = []
    left_out: dict[str, str] = {}
    for activation in wanted:
        other = beside.get(_key(activation, by_name=is_pair))
        reason = _reason(activation, other)
        if reason or other is None:
            left_out[str(activation.address)] = reason
        else:
            pairs.append((activation, other))
    if not pairs:
        asked = [*product(wanted, b.activations), *product(a.activations, others)]
        raise HookVizError(_no_pairs(a, b, left_out, asked))
    return tuple(pairs), left_out


def _activations(capture: Capture, layer: str | None) -> tuple[Activation, ...]:
    """Return all of a capture, the activation at a written address, or all parts of a layer."""
    if layer is None:
        return capture.activations
    if layer in capture:
        return (capture[layer],)
    parts = capture.calls(layer)
    if not parts:
        raise UnknownLayerError(
            say("captured layer of {model}", model=capture.model), layer, capture
        )
    return parts


def _key(activation: Activation, *, by_name: bool) -> tuple[Any, ...]:
    """Return the key that pairs have in common: the address, without a layer if both are named."""
    address = activation.address
    return ("" if by_name else address.layer), address.call, address.path


def _reason(activation: Activation, other: Activation | None) -> str:
    """Return why two activations can't be compared; empty where they can."""
    if other is None:
        return say("B has nothing under that address")
    values, other_values = activation.values, other.values
    if values.shape != other_values.shape:
        same = activation.address == other.address
        return say(
            "A has {size_a} and B {size_b}{place}",
            size_a=_size(activation),
            size_b=_size(other),
            place="" if same else say(" in {address}", address=other.address),
        )
    if not values.ndim or not values.numel():
        return say("it has no channels")
    if values.is_complex() or other_values.is_complex():
        return say("it holds complex numbers")
    return ""


def _no_pairs(a: Capture, b: Capture, left_out: Mapping[str, str], asked: Iterable[Pair]) -> str:
    """Return why nothing is compared, and suggest pairs: those of what was `asked` for first."""
    shown = [f"{name}: {reason}" for name, reason in [*left_out.items()][:_SUGGESTED]]
    more = (
        say("; and {count:,} more", count=len(left_out) - _SUGGESTED)
        if len(left_out) > _SUGGESTED
        else ""
    )
    message = say(
        "No layer of {model_a} and {model_b} can be compared here. {reasons}{rest}.",
        model_a=a.model,
        model_b=b.model,
        reasons="; ".join(shown),
        rest=more,
    )
    suggested = _suggested(asked) or _suggested(product(a.activations, b.activations))
    if suggested:
        named = joined(
            say(
                "A's {address_a} and B's {address_b}",
                address_a=first.address,
                address_b=second.address,
            )
            for first, second in suggested
        )
        return say(
            "{problem} Of one shape are {pairs}, to be named as layer= and other_layer=.",
            problem=message,
            pairs=named,
        )
    shapes = tuple(times(capture.input.shape[1:]) for capture in (a, b))
    size = ""
    if shapes[0] != shapes[1]:
        size = say(
            " The inputs are {shape_a} and {shape_b}: capture both in one size.",
            shape_a=shapes[0],
            shape_b=shapes[1],
        )
    return say(
        "{problem}{sizes} hookviz.similarity compares layers of any shape, over many images.",
        problem=message,
        sizes=size,
    )


def _suggested(pairs: Iterable[Pair]) -> list[Pair]:
    """Return a few of the pairs that can be compared, those with one address in both first."""
    comparable = [pair for pair in pairs if not _reason(*pair)]
    comparable.sort(key=lambda pair: pair[0].address != pair[1].address)
    return comparable[:_SUGGESTED]


def _size(activation: Activation) -> str:
    return times(activation.values.shape) or say("one number")
