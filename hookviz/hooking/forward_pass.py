"""..."""

from collections.abc import Sequence

import torch
from torch import nn

from hookviz.errors import ModelError, shorten
from hookviz.types import Model, Preprocess
from hookviz.wording import times


def own_shape(model: Model) -> tuple[int, int, int]:
    """``(C, H, W)`` of the input that the model's own preprocessing makes."""
    if isinstance(model.preprocess, Preprocess):
        return model.preprocess.channels, model.preprocess.crop, model.preprocess.crop
    return 3, 224, 224


def refused(model: Model, shape: Sequence[int], reason: Exception) -> ModelError:
    """The error that says which input a network could not take, and which it is made for."""
    given, own = (times(dims) for dims in (shape, own_shape(model)))
    why = shorten(str(reason).strip().partition("\n")[0], 200) or type(reason).__name__
    return ModelError(f"{model.title} can't take an input of {given}: {why}. It is made for {own}.")


def place_of(network: nn.Module) -> tuple[torch.device, torch.dtype]:
    """Where and in which precision the network computes, by its first parameter of real numbers."""
    for parameter in network.parameters():
        if parameter.is_floating_point():
            return parameter.device, parameter.dtype
    return torch.device("cpu"), torch.float32
