"""Which activations of two captures can stand beside each other."""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from hookviz.errors import HookVizError, UnknownLayerError
from hookviz.language.saying import say
from hookviz.types import Activation, Capture
from hookviz.wording import times

Pair = tuple[Activation, Activation]

_SUGGESTED = 3  # pairs that an error names


def pairs_of(
    a: Capture, b: Capture, layer: str | None = None, other_layer: str | None = None
) -> tuple[tuple[Pair, ...], dict[str, str]]:
    """What of A stands beside what of B, in A's order; and why the rest of A is left out.

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
        beside = {_place(wanted[0], by_name=True): others[0]}
    else:
        beside = {_place(each, by_name=is_pair): each for each in others}
    pairs: list[Pair] = []
    left_out: dict[str, str] = {}
    for each in wanted:
        other = beside.get(_place(each, by_name=is_pair))
        reason = _reason(each, other)
        if reason or other is None:
            left_out[str(each.address)] = reason
        else:
            pairs.append((each, other))
    if not pairs:
        asked = [*product(wanted, b.activations), *product(a.activations, others)]
        raise HookVizError(_nothing(a, b, left_out, asked))
    return tuple(pairs), left_out


def _activations(capture: Capture, layer: str | None) -> tuple[Activation, ...]:
    """All of a capture, the one at a written address, or all parts of a layer."""
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


def _place(activation: Activation, *, by_name: bool) -> tuple[Any, ...]:
    """By what an activation is found again: its address, without the layer in a named pair."""
    address = activation.address
    return ("" if by_name else address.layer), address.call, address.path


def _reason(each: Activation, other: Activation | None) -> str:
    """Why two activations can't be compared; empty where they can."""
    if other is None:
        return say("B has nothing under that address")
    if each.values.shape != other.values.shape:
        there = "" if each.address == other.address else say(" in {address}", address=other.address)
        return say(
            "A has {size_a} and B {size_b}{place}",
            size_a=_size(each),
            size_b=_size(other),
            place=there,
        )
    if not each.values.ndim or not each.values.numel():
        return say("it has no channels")
    if each.values.is_complex() or other.values.is_complex():
        return say("it holds complex numbers")
    return ""


def _nothing(a: Capture, b: Capture, left_out: Mapping[str, str], asked: Iterable[Pair]) -> str:
    """Why nothing is compared, and what can be: with what was `asked` for before anything else."""
    shown = [f"{name}: {reason}" for name, reason in [*left_out.items()][:_SUGGESTED]]
    more = (
        say("; and {count:,} more", count=len(left_out) - _SUGGESTED)
        if len(left_out) > _SUGGESTED
        else ""
    )
    said = say(
        "No layer of {model_a} and {model_b} can be compared here. {reasons}{rest}.",
        model_a=a.model,
        model_b=b.model,
        reasons="; ".join(shown),
        rest=more,
    )
    same = _of_one_shape(asked) or _of_one_shape(product(a.activations, b.activations))
    if same:
        named = ", ".join(
            say(
                "A's {address_a} and B's {address_b}",
                address_a=each.address,
                address_b=other.address,
            )
            for each, other in same
        )
        return say(
            "{problem} Of one shape are {pairs}, to be named as layer= and other_layer=.",
            problem=said,
            pairs=named,
        )
    shapes = tuple(times(each.input.shape[1:]) for each in (a, b))
    size = ""
    if shapes[0] != shapes[1]:
        size = say(
            " The inputs are {shape_a} and {shape_b}: capture both in one size.",
            shape_a=shapes[0],
            shape_b=shapes[1],
        )
    return say(
        "{problem}{sizes} hookviz.similarity compares layers of any shape, over many images.",
        problem=said,
        sizes=size,
    )


def _of_one_shape(pairs: Iterable[Pair]) -> list[Pair]:
    """A few of the pairs that can be compared, those with one address in both before others."""
    found = [pair for pair in pairs if not _reason(*pair)]
    found.sort(key=lambda pair: pair[0].address != pair[1].address)
    return found[:_SUGGESTED]


def _size(activation: Activation) -> str:
    return times(activation.values.shape) or say("one number")
