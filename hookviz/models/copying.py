"""Copy networks: for answers while a person's own goes on training, and to change modules."""

import copy
from dataclasses import replace

import torch
from torch import nn

from hookviz.errors import ModelError, shorten
from hookviz.hooking.forward_pass import private_replica
from hookviz.hooking.network_state import is_shared
from hookviz.hooking.own_network import locked
from hookviz.language.saying import say
from hookviz.types import Model


def copied(model: Model) -> Model:
    """Return the model around a deep copy of its network; a model of the catalog as it is.

    The copy is what `copy.deepcopy` makes, and nothing in it is put right.

    Raises:
        ModelError: the network can't be copied.
    """
    if is_shared(model.network):
        return model
    with locked(model.network), torch.inference_mode(mode=False):
        return replace(model, network=_deep_copy(model, model.network))


def copied_network(model: Model) -> nn.Module:
    """Return a deep copy of the network, with the tensors and in the mode that it computes with.

    Raises:
        ModelError: the network can't be copied.
    """
    alone = replace(model, example=None)  # whose other arguments are for each pass, not in it
    with private_replica(alone) as network:
        return _deep_copy(model, network)


def _deep_copy(model: Model, network: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(network)
    except Exception as error:
        reason = shorten(str(error).partition("\n")[0].rstrip("."), 200) or type(error).__name__
        raise ModelError(
            say("{model} can't be copied: {reason}.", model=model.title, reason=reason)
        ) from error
