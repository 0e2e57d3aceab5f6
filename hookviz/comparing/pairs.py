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
            "A has {size} and B {size_2}{there}", size=_size(each), size_2=_size(other), there=there
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
        say("; and {left_out_count:,} more", left_out_count=len(left_out) - _SUGGESTED)
        if len(left_out) > _SUGGESTED
        else ""
    )
    said = say(
        "No layer of {model} and {model_2} can be compared here. {shown}{more}.",
        model=a.model,
        model_2=b.model,
        shown="; ".join(shown),
        more=more,
    )
    same = _of_one_shape(asked) or _of_one_shape(product(a.activations, b.activations))
    if same:
        named = ", ".join(
            say("A's {address} and B's {address_2}", address=each.address, address_2=other.address)
            for each, other in same
        )
        return say(
            "{said} Of one shape are {named}, to be named as layer= and other_layer=.",
            said=said,
            named=named,
        )
    shapes = tuple(times(each.input.shape[1:]) for each in (a, b))
    size = ""
    if shapes[0] != shapes[1]:
        size = say(
            " The inputs are {shapes} and {shapes_2}: capture both in one size.",
            shapes=shapes[0],
            shapes_2=shapes[1],
        )
    return say(
        "{said}{size} hookviz.similarity compares layers of any shape, over many images.",
        said=said,
        size=size,
    )


def _of_one_shape(pairs: Iterable[Pair]) -> list[Pair]:
    """A few of the pairs that can be compared, those with one address in both before others."""
    found = [pair for pair in pairs if not _reason(*pair)]
    found.sort(key=lambda pair: pair[0].address != pair[1].address)
    return found[:_SUGGESTED]


def _size(activation: Activation) -> str:
    return times(activation.values.shape) or say("one number")
