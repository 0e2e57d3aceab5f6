"""Find which input a network of one's own takes, where it has not said that."""

from collections.abc import MutableMapping

from torch import nn

from hookviz.capturing.layer_trace import layer_trace
from hookviz.errors import ModelError
from hookviz.hooking.forward_pass import stated_shape
from hookviz.hooking.network_state import ByNetwork
from hookviz.hooking.own_network import locked
from hookviz.models.guessing import Guess, normalises_itself, search_input
from hookviz.types import Model

_found: MutableMapping[nn.Module, Guess | None] = ByNetwork()


def own_shape(model: Model) -> tuple[int, ...]:
    """Return the shape of the model's own input, ``(C, H, W)``.

    ``(C, L)`` of sound, ``(C, D, H, W)`` of volumes and ``(C, T, H, W)`` of video.
    """
    settle_input(model)
    return stated_shape(model)


def settle_input(model: Model) -> None:
    """Try the input that was guessed for a network, once, and correct the model where it fails.

    The pass that tries it is the one that traces its layers.
    """
    if not model.is_guessed:
        return
    with locked(model.network):
        if model.network not in _found:
            _found[model.network] = _correction(model)
        guess = _found[model.network]
        if guess is not None:
            # The one thing about a model that a pass may change.
            if not callable(model.preprocess):
                object.__setattr__(model, "preprocess", guess.preprocess)
            object.__setattr__(model, "input_shape", guess.input_shape(model.preprocess))
        object.__setattr__(model, "is_guessed", False)


def _correction(model: Model) -> Guess | None:
    """Return another input than the stated one, where that fails and another runs."""
    try:
        trace = layer_trace(model, stated_shape(model))
        if trace.keeps_batch or normalises_itself(model.network):  # of boxes there are several
            return None
    except ModelError:
        pass
    return search_input(model)
