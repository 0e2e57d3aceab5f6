"""Compute class scores with every ReLU of a network switched off: each hands on what it gets.

They are found as the pass calls them, as modules and as functions of torch alike, on a private
replica. What a compiled program (TorchScript) does inside is not seen.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from hookviz.explaining.scores.scoring import class_scores
from hookviz.hooking.forward_pass import private_replica
from hookviz.hooking.torch_functions import EveryFunction, function_name
from hookviz.outputs.answer import Reading
from hookviz.types import Model, ModelInput

KINDS = {
    "relu": "ReLU",
    "relu6": "ReLU6",
    "leaky_relu": "LeakyReLU",
    "prelu": "PReLU",
    "rrelu": "RReLU",
    "elu": "ELU",
    "selu": "SELU",
    "celu": "CELU",
    "gelu": "GELU",
    "silu": "SiLU",
    "mish": "Mish",
    "hardswish": "Hardswish",
    "softplus": "Softplus",
}
"""Names of the torch functions that are switched off, and what they are called: ReLU, its kin."""

_CUTS = ("clamp", "clip", "hardtanh", "clamp_min")
"""Functions that are a ReLU where they cut at 0 below."""


@dataclass(frozen=True, eq=False, slots=True)
class WithoutRelu:
    """Class scores of a pass whose ReLUs did nothing.

    Attributes:
        scores: before the softmax, ``(classes,)``.
        switched_off: how many calls of each kind were found, by what it is called.
        reading: what the scores are.
    """

    scores: Tensor = field(repr=False)
    switched_off: Mapping[str, int]
    reading: Reading


def without_relu(model: Model, model_input: ModelInput) -> WithoutRelu:
    """Compute the class scores of an input with every ReLU and its kin switched off.

    Nothing is switched off, and the scores are the network's own, where none is found.

    Raises:
        ModelError: the network can't take this input, or puts out no class scores.
    """
    with private_replica(model) as replica, _HandedOn() as handed_on:
        found = class_scores(model, replica, model_input.tensor)
    scores = found.values[0].detach().float().cpu()
    return WithoutRelu(scores, dict(handed_on.found), found.reading)


class _HandedOn(EveryFunction):
    """Makes each ReLU of a pass an identity, and counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        kind = _kind(func, args, kwargs)
        if not kind:
            return func(*args, **kwargs)
        self.found[kind] += 1
        return args[0] if args else kwargs["input"]


def _kind(func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Return what a torch function is called if it is a ReLU; empty if it is none."""
    name = function_name(func)
    if name not in _CUTS:
        return KINDS.get(name, "")
    named = next((kwargs[key] for key in ("min", "min_val") if key in kwargs), None)
    least = args[1] if len(args) > 1 else named
    if not isinstance(least, int | float) or least != 0:
        return ""
    highest = args[2] if len(args) > 2 else kwargs.get("max", kwargs.get("max_val"))
    if highest is None:
        return "ReLU"
    return "ReLU6" if highest == 6 else ""
