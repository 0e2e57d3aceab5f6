"""Estimate the memory that a pass or a loading takes, before it begins.

Measured on the catalog's largest networks at 1024 pixels: five times the largest output, for its
copies in other layouts and what torch computes in, beside what is recorded.
"""

from functools import partial
from math import prod, sqrt

from hookviz.capturing.inputs import own_shape
from hookviz.capturing.layer_trace import input_trace, layer_trace
from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.serving.memory_reservations import MemoryNeed
from hookviz.settings import MEGABYTE, settings
from hookviz.types import Model, ModelInput

_COPIES = 5  # of the largest output, at most
_RANDOM, _READ = 1.04, 2  # times the parameters' bytes; what is read is in memory twice
_FLOAT_BYTES = 4
_SIDE_STEP = 32  # pixels between two sides that are suggested


def pass_need(
    model: Model, given: ModelInput | tuple[int, ...], *, keeps_all: bool = False
) -> MemoryNeed | None:
    """Return what a pass takes; None where the network can't take the input, which others say.

    Args:
        model: the network.
        given: its input, or the shape of one, ``(C, H, W)``.
        keeps_all: whether all outputs may be kept, as for gradients. It takes more where there is
            more, and goes on alone where there is not.
    """
    try:
        if isinstance(given, ModelInput):
            shape, trace = tuple(given.tensor.shape[1:]), input_trace(model, given)
        else:
            shape, trace = given, layer_trace(model, given)
    except HookVizError:
        return None
    outputs = [(trace.nbytes[name], calls) for name, calls in trace.leaf_calls.items()]
    largest = _COPIES * max((nbytes // calls for nbytes, calls in outputs), default=0)
    together = sum(nbytes for nbytes, _ in outputs)
    recorded = min(together, settings().session_mb * MEGABYTE)
    least = largest + recorded
    nbytes = largest + together if keeps_all else least
    return MemoryNeed(nbytes, least, partial(_smaller_input, shape, least))


def own_pass_need(model: Model, side: int | None = None) -> MemoryNeed | None:
    """Return what a pass takes at the model's own size, or over a square of `side` pixels."""
    shape = own_shape(model)
    return pass_need(model, shape if side is None else (*shape[:-2], side, side))


def loading_need(parameters: int, *, random: bool) -> MemoryNeed:
    """Return what loading a network takes.

    Args:
        parameters: how many numbers it learns.
        random: whether its weights are random ones, and not read.
    """
    each = _FLOAT_BYTES * (_RANDOM if random else _READ)
    nbytes = int(parameters * each)
    return MemoryNeed(nbytes, nbytes, partial(_smaller_model, each))


def _smaller_input(shape: tuple[int, ...], least: int, room: int) -> str:
    side = sqrt(prod(shape[-2:]) * max(0, room) / least)
    if side < _SIDE_STEP:
        return say("A smaller model takes less.")
    pixels = int(side // _SIDE_STEP * _SIDE_STEP)
    return say("An input of {pixels}×{pixels} pixels fits.", pixels=pixels)


def _smaller_model(each: float, room: int) -> str:
    millions = int(max(0, room) / each / 1e6)
    if not millions:
        return say("Try again in a moment.")
    return say("A model of at most {millions} million parameters fits.", millions=millions)
